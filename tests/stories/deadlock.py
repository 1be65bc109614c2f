"""Two threads that each have the lock that the other one waits for. Prints a line once both are about to."""
import sys
import threading

accounts, audit = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def transfer():
    with accounts:
        both.wait()
        print("stuck", file=sys.stderr, flush=True)
        with audit:
            pass


def report():
    with audit:
        both.wait()
        with accounts:
            pass


threads = [threading.Thread(target=target, name=target.__name__) for target in (transfer, report)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
