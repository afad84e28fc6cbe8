import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** A pool of threads: futures give their results, and a monitor keeps a sum right. */
public class Pool {
    private static final Object LOCK = new Object();
    private static long shared = 0;

    private static long work(int factor) {
        long sum = 0;
        for (int i = 0; i < 20000; i++) {
            sum += (long) i * factor;
        }
        synchronized (LOCK) {
            shared += sum;
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> futures = new ArrayList<>();
        for (int task = 0; task < 8; task++) {
            final int factor = task;
            futures.add(pool.submit(() -> work(factor)));
        }
        long sum = 0;
        for (Future<Long> future : futures) {
            sum += future.get();
        }
        pool.shutdown();
        System.out.println(pool.awaitTermination(1, TimeUnit.MINUTES) + " " + sum + " " + shared);
    }
}
