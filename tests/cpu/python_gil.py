"""A thread that holds the GIL, one that wants it, and one that sleeps; prints what each range had of wall and CPU time.

Usage: python_gil.py MILLISECONDS CLIENT. `holds` sums in C, which gives nobody else a turn; `wants` runs Python code
beside it; `dozes` runs and sleeps in turns.
"""
import ctypes
import json
import sys
import threading
import time

client = ctypes.PyDLL(sys.argv[2])
truth = {}


def timed(name, function):
    client.client_push(name.encode())
    wall, cpu = time.monotonic(), time.thread_time()
    function()
    truth[name] = {"wall": (time.monotonic() - wall) * 1e9, "cpu": (time.thread_time() - cpu) * 1e9}
    client.client_pop()


def hold(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(2_000_000))  # some 30 ms within one call


def want():
    while not done.is_set():
        sum(i * i for i in range(100))


def doze(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        until = time.thread_time() + 0.005
        while time.thread_time() < until:
            sum(i * i for i in range(100))
        time.sleep(0.005)


seconds = float(sys.argv[1]) / 1000
done = threading.Event()
waiter = threading.Thread(target=lambda: timed("wants", want))
waiter.start()
timed("holds", lambda: hold(seconds * 0.5))
done.set()
waiter.join()
timed("dozes", lambda: doze(seconds * 0.5))
print(json.dumps(truth))
