"""Processes beside threads: pools, queues, locks, shared values and shared memory."""
import concurrent.futures
import multiprocessing
import threading
from multiprocessing import shared_memory


def square(x):
    return x * x


def put(queue, i):
    queue.put((i, sum(range(i * 1000))))


def add(value, lock):
    for _ in range(100):
        with lock:
            value.value += 1


def fill(name, i):
    memory = shared_memory.SharedMemory(name=name)
    memory.buf[i] = i + 1
    memory.close()


def all_of(*workers):
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
        print(list(pool.map(square, range(20))))
    queue = fork.Queue()
    putting = [fork.Process(target=put, args=(queue, i)) for i in range(3)]
    for process in putting:
        process.start()
    print(sorted(queue.get() for _ in putting))
    for process in putting:
        process.join()
    value, lock = fork.Value("i", 0), fork.Lock()
    arguments = dict(target=add, args=(value, lock))
    all_of(*(make(**arguments) for make in (fork.Process, threading.Thread) for _ in range(3)))
    print(value.value)
    memory = shared_memory.SharedMemory(create=True, size=4096)
    all_of(*(fork.Process(target=fill, args=(memory.name, i)) for i in range(3)))
    print(bytes(memory.buf[:3]))
    memory.close()
    memory.unlink()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(square, range(5)))
