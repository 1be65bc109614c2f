"""Spends CPU time in known functions under known ranges and prints how much, by the thread's own clock.

Usage: python_shares.py MILLISECONDS CLIENT, a shared object with client_push and client_pop. `red` is Python alone,
`green` calls back from C (sorted), `blue` is deeper; each goes through `spend`, and the range `nap` sleeps.
"""
import ctypes
import json
import sys
import time

client = ctypes.PyDLL(sys.argv[2])
truth = {}


def red():
    total = 0
    for i in range(3000):
        total += i * i
    return total


def green():
    return sorted(range(3000), key=lambda value: -value)


class Deep:
    def blue(self, levels=8):
        if levels > 0:
            return self.blue(levels - 1)
        return [str(i) for i in range(2000)]


def spend(name, function, ms):
    client.client_push(name.encode())
    begin = now = time.thread_time()
    while now < begin + ms / 1000:
        function()
        now = time.thread_time()
    truth[name] = truth.get(name, 0) + (now - begin) * 1000
    client.client_pop()


def main(ms):
    client.client_push(b"work")
    deep = Deep()
    for _ in range(10):
        spend("a", red, ms * 0.03)
        spend("b", green, ms * 0.05)
        spend("c", deep.blue, ms * 0.02)
    client.client_pop()
    client.client_push(b"nap")
    time.sleep(0.1)
    client.client_pop()
    print(json.dumps(truth))


main(float(sys.argv[1]))
