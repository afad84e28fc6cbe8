"""Threads run other programs, and fork."""
import os
import subprocess
import threading

found = {}


def run_echo(i):
    done = subprocess.run(["echo", "hello", str(i)], capture_output=True, text=True)
    found["echo", i] = done.stdout.strip()


def fork(i):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, f"child of {i}, {len(found)} found".encode())
        os._exit(i)
    os.close(writing)
    said = os.read(reading, 100).decode()
    os.close(reading)
    found["fork", i] = said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for work in run_echo, fork:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
        if work is fork:
            thread.join()
    for thread in threads:
        thread.join()
for what in sorted(found.items()):
    print(what)
