"""Four ranks below a launcher: rank 2 computes, the others wait for it. They end with its standard input, or when it is killed."""
import os
import subprocess
import sys


def slow_step():
    launcher = os.getppid()
    while os.getppid() == launcher:
        sum(i * i for i in range(1000))


def allreduce():
    sys.stdin.read()


if "RANK" in os.environ:
    slow_step() if os.environ["RANK"] == "2" else allreduce()
else:
    ranks = [subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "4"})
             for rank in range(4)]
    sys.stdin.read()
    for rank in ranks:
        rank.kill()
        rank.wait()
