import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;

/** What Java programs do with threads: pools, monitors, garbage, parallel streams, sockets and files that several use. */
public class Threads {
    private static final int THREADS = 4;
    private static int counted;

    /** Makes garbage, and counts under a monitor. */
    private static long litter(int self) {
        Map<Integer, byte[]> kept = new HashMap<>();
        long bytes = 0;
        for (int i = 0; i < 5_000; i++) {
            kept.put(i % 100, new byte[500 + (i + self) % 1000]);
            bytes += kept.get(i % 100).length;
            if (i % 100 == 0) {
                synchronized (Threads.class) {
                    counted++;
                }
            }
        }
        return bytes;
    }

    private static void serve(ServerSocket server, int clients) {
        for (int i = 0; i < clients; i++) {
            try (Socket client = server.accept()) {
                client.getOutputStream().write(("greeting " + i + "\n").getBytes());
            } catch (IOException error) {
                System.out.println(error);
            }
        }
    }

    private static int write(RandomAccessFile file, int place) throws IOException {
        synchronized (file) {
            file.seek(place * 100L);
            file.write(new byte[96]);
            file.writeInt(place);
        }
        return place;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<Long>> sums = new ArrayList<>();
        for (int i = 0; i < 2 * THREADS; i++) {
            int self = i;
            sums.add(pool.submit(() -> litter(self)));
        }
        for (Future<Long> sum : sums) {
            System.out.println("bytes " + sum.get());
        }
        System.out.println("counted " + counted);

        ConcurrentHashMap<Integer, LongAdder> classes = new ConcurrentHashMap<>();
        IntStream.range(0, 100_000).parallel()
            .forEach(i -> classes.computeIfAbsent(i % 17, unused -> new LongAdder()).increment());
        System.out.println("classes " + classes.size() + " " + classes.get(3).sum());
        System.out.println("sum " + IntStream.range(0, 1_000_000).parallel().mapToLong(i -> i % 13).sum());

        try (ServerSocket server = new ServerSocket(0, 4, InetAddress.getLoopbackAddress())) {
            Future<?> served = pool.submit(() -> serve(server, 3));
            for (int i = 0; i < 3; i++) {
                try (Socket client = new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort())) {
                    System.out.println(new BufferedReader(new InputStreamReader(client.getInputStream())).readLine());
                }
            }
            served.get();
        }

        Path path = Files.createTempFile("threads", "");
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            List<Future<Integer>> places = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                int place = i;
                places.add(pool.submit(() -> write(file, place)));
            }
            for (Future<Integer> place : places) {
                place.get();
            }
            for (int i = 0; i < 8; i++) {
                file.seek(i * 100L + 96);
                System.out.println("place " + file.readInt());
            }
            System.out.println("length " + file.length());
        }
        Files.delete(path);
        pool.shutdown();
    }
}
