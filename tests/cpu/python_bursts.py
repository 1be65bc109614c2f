"""Python work of some 60 microseconds before each wait. Usage: python_bursts.py MILLISECONDS CLIENT.

Prints the CPU time of `work`, and of all, by the thread's own clock: `rest` has the wait and next to nothing else.
"""
import json
import sys
import time

clock = time.thread_time_ns


def work(count):
    total = 0
    for i in range(count):
        total += i * i
    return total


def rest():
    time.sleep(0.0002)


def count_of(ns):
    begin = clock()
    work(100_000)
    return int(ns * 100_000 / (clock() - begin))


def bursts(ms):
    count, in_work, begin = count_of(60_000), 0, clock()
    while clock() < begin + ms * 1_000_000:
        before = clock()
        work(count)
        in_work += clock() - before
        rest()
    return {"work": in_work / 1e6, "all": (clock() - begin) / 1e6}


print(json.dumps(bursts(int(sys.argv[1]))))
