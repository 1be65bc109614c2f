#!/usr/bin/env python3
"""`rangescope attach --dump`: what programs that hang do at this moment. Usage: dump.py BIN_DIR MUTEXES

How long a thread waits, and how long it takes to read, is the machine's: what is asserted are functions, lines, who waits for whom, and
that nothing that sleeps is stopped.
"""
import contextlib
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN, MUTEXES = (os.path.abspath(path) for path in sys.argv[1:3])
TOOL = f"{BIN}/rangescope"
HERE = os.path.dirname(os.path.abspath(__file__))
DEADLOCK = os.path.join(HERE, "..", "stories", "deadlock.py")
PYTHON = "/usr/bin/python3"
FUTEX, SLEEP = {"x86_64": ("202", "230"), "aarch64": ("98", "115")}[os.uname().machine]


def line_of(path, text, after=""):
    """Number of the first line that holds `text`, behind the one that holds `after`."""
    with open(path, encoding="utf-8") as source:
        lines = list(enumerate(source, 1))
    begin = next(number for number, line in lines if after in line)
    return next(number for number, line in lines if number >= begin and text in line)


def calls(pid):
    """Numbers of the system calls that the threads of a process wait in."""
    out = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            out.append(file.read().split()[0])
    return out


class Dump(unittest.TestCase):
    @contextlib.contextmanager
    def running(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process.pid
        finally:
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def text(self, pid, *options):
        done = cases.run([TOOL, "attach", pid, "--dump", *options])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def processes(self, pid, *options):
        result = json.loads(self.text(pid, "-f", "json", *options))
        self.assertEqual(result["schema"], "rangescope.dump/1")
        return result["processes"]

    def process(self, pid):
        process, = self.processes(pid)
        self.assertEqual(process["pid"], pid)
        return process

    def test_deadlock_of_two_locks_of_python(self):
        with self.running(PYTHON, DEADLOCK) as pid:
            cases.until(lambda: calls(pid).count(FUTEX) == 3, "three threads that wait")
            process, text = self.process(pid), self.text(pid)
        self.assertEqual(process["stopped_ns"], 0)
        threads = {thread["tid"]: thread for thread in process["threads"]}
        cycle, = process["deadlocks"]
        functions = {threads[tid]["python_stack"][0]["function"].split(".")[-1]: tid for tid in cycle}
        self.assertEqual(set(functions), {"transfer", "report"})
        for own, other, lock in (("transfer", "report", "with audit"), ("report", "transfer", "with accounts")):
            thread = threads[functions[own]]
            self.assertEqual((thread["wait"]["kind"], thread["wait"]["call"], thread["wait"]["holder"]), ("lock", "futex", functions[other]))
            line = line_of(DEADLOCK, lock, after=f"def {own}")
            self.assertEqual(thread["place"], f"{own} (deadlock.py:{line})")
            self.assertRegex(text.splitlines()[0], rf"deadlock: .*{own} \(deadlock\.py:{line}\) in thread {functions[own]} \S+ waits for a lock "
                                                   rf"that thread {functions[other]} has")
        main = threads[pid]
        self.assertEqual(main["place"], f"<module> (deadlock.py:{line_of(DEADLOCK, 'thread.join()')})")
        self.assertIsNone(main["wait"]["holder"])
        self.assertIn("join (threading.py:", text)

    def test_whom_most_threads_wait_for_is_the_first_line(self):
        program = ("import threading, time\nlock = threading.Lock()\n"
                   "def write_log():\n time.sleep(600)\n"
                   "def update():\n with lock: write_log()\n"
                   "for _ in range(3): threading.Thread(target=update).start()\n")
        with self.running(PYTHON, "-c", program) as pid:
            waits = lambda: [thread["wait"] for thread in self.process(pid)["threads"]]
            cases.until(lambda: len([wait for wait in waits() if wait and wait["holder"]]) == 2, "two threads that wait for the lock")
            line = self.text(pid).splitlines()[0]
            sleeper, = {wait["holder"] for wait in waits() if wait["holder"]}
        self.assertRegex(line, rf"^2 threads wait for what thread {sleeper} \S+ has: write_log \(<string>:4\) sleeps")

    def test_no_deadlock_is_ruled_out_where_nobody_knows_who_has_a_lock(self):
        """A lock of Python's that is not taken by `with` has no owner that could be read."""
        program = ("import threading, time\nlock = threading.Lock()\nlock.acquire()\n"
                   "for _ in range(2): threading.Thread(target=lock.acquire).start()\n")
        with self.running(PYTHON, "-c", program) as pid:
            first_line = lambda: self.text(pid).splitlines()[0]  # the threads start one after the other
            cases.until(lambda: first_line() == "0 of 3 threads run, 3 wait; who has the locks that 3 of them wait for is not known",
                        "a line that says so")

    def test_deadlock_of_two_mutexes(self):
        with self.running(MUTEXES) as pid:
            cases.until(lambda: calls(pid).count(FUTEX) == 4, "four threads that wait")
            process, text = self.process(pid), self.text(pid)
        self.assertEqual((process["stopped_ns"], process["python"]), (0, ""))
        threads = {thread["tid"]: thread for thread in process["threads"]}
        cycle, = process["deadlocks"]
        source = os.path.join(HERE, "mutexes.c")
        lines = {"transfer": line_of(source, "&audit); /* never"), "report": line_of(source, "&accounts); /* nor"),
                 "look": line_of(source, "&accounts); /* waits")}
        places = {thread["place"]: thread for thread in threads.values()}
        by_function = {name: places[f"{name} (mutexes.c:{line})"] for name, line in lines.items()}
        self.assertEqual(set(cycle), {by_function["transfer"]["tid"], by_function["report"]["tid"]})
        self.assertEqual(by_function["look"]["wait"]["holder"], by_function["transfer"]["tid"])
        self.assertEqual(threads[pid]["native_stack"][-1]["function"].strip("_").split("@")[0], "start")
        self.assertRegex(text.splitlines()[0], rf"^deadlock: .*transfer \(mutexes\.c:{lines['transfer']}\) in thread")

    def test_a_blocked_event_loop(self):
        source = os.path.join(HERE, "blocked.py")
        with self.running(PYTHON, source) as pid:
            cases.until(lambda: SLEEP in calls(pid), "the sleep")
            process, text = self.process(pid), self.text(pid)
        line = line_of(source, "time.sleep(1000)")
        self.assertRegex(text.splitlines()[0], rf"^the event loop of thread {pid} \S+ is blocked: blocking \(blocked\.py:{line}\) sleeps for .* "
                                               r"\(clock_nanosleep\)$")
        thread = next(thread for thread in process["threads"] if thread["tid"] == pid)
        names = [frame["function"].split(".")[-1] for frame in thread["python_stack"]]
        self.assertEqual(names[:2], ["blocking", "handler"])
        self.assertEqual(names[-1], "<module>")
        self.assertEqual(process["deadlocks"], [])
        if thread["wait"]["for_ns"] is not None:  # not all kernels tell
            self.assertGreater(thread["wait"]["for_ns"], 0)

    def test_ranks_of_a_job_the_odd_one_first(self):
        source = os.path.join(HERE, "ranks.py")
        with self.running(PYTHON, source) as pid:
            def started():
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                    ranks = file.read().split()
                return len(ranks) == 4 and sum("0" in calls(rank) for rank in ranks) == 3 and ranks
            ranks = cases.until(started, "three ranks that read")
            cases.spends(0.2, int(ranks[2]))
            processes = self.processes(pid, "--tree")
            text = self.text(pid, "--tree")
        self.assertEqual(len(processes), 5)
        odd = processes[0]
        self.assertEqual((odd["rank"], odd["pid"]), (2, int(ranks[2])))
        self.assertTrue(any(frame["function"] == "slow_step" for frame in odd["threads"][0]["python_stack"]), odd)
        self.assertTrue(odd["threads"][0]["native_stack"] or odd["notes"], odd)
        self.assertLessEqual(odd["stopped_ns"], odd["read_ns"])
        self.assertTrue(odd["stopped_ns"] > 0 or odd["notes"], odd)
        self.assertEqual([process["rank"] for process in processes if process["rank"] not in (2, None)], [0, 1, 3])
        self.assertTrue(re.search(rf"process {ranks[2]} \(rank 2\): ", text.split("\n\n")[0]), text)

    def test_what_it_refuses(self):
        with self.running(MUTEXES) as pid:
            done = cases.run([TOOL, "attach", pid, "--dump", "-f", "html"])
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("--dump is written as text or JSON", done.stderr)
        self.assertEqual(cases.run([TOOL, "attach", 999_999_999, "--dump"]).returncode, 66)


if __name__ == "__main__":
    cases.main()
