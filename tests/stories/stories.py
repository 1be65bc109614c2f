"""What the first line says of programs without ranges: the user's functions, with file and line. Usage: stories.py BIN_DIR

Shares and times are the machine's: what is asserted are names, lines, kinds, counts and order.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN_DIR = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"


def line_of(program, function):
    """Where a function of a program begins: "server.py:15"."""
    with open(os.path.join(HERE, program), encoding="utf-8") as source:
        for number, text in enumerate(source, 1):
            if re.match(rf"\s*(async )?def {function}\(", text):
                return f"{program}:{number}"
    raise AssertionError(f"{program} has no {function}")


def named(program, function):
    return f"{function} ({line_of(program, function)})"


def first_line(done):
    """The first line of the verdict, as it was before it was wrapped."""
    lines = done.stderr.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("1. "))
    end = next(i for i in range(begin + 1, len(lines)) if re.match(r"\s*(try|next): |2\. |$", lines[i]))
    return " ".join(line.strip() for line in lines[begin:end])


def waits(report):
    """{(kind, function): row} of the waits that are not idle."""
    return {(row["kind"], row["place"]["function"]): row for row in report["waits"] if row["place"] and not row["idle"]}


class Stories(cases.unittest.TestCase):
    def profile(self, program, *options):
        return cases.profile(BIN_DIR, [PYTHON, os.path.join(HERE, program)], *options)

    def test_service_names_what_runs_under_its_lock_and_who_waits_for_it(self):
        report, done = self.profile("server.py")
        line = first_line(done)
        self.assertIn(named("server.py", "slow_regex"), line)
        self.assertIn(named("server.py", "lookup"), line)
        row = waits(report)[("lock", "lookup")]
        self.assertGreater(row["count"], 1)
        self.assertEqual(row["held_while_running"]["function"], "slow_regex")
        idle = {row["place"]["function"] for row in report["waits"] if row["idle"] and row["place"]}
        self.assertNotIn("lookup", idle)
        functions = [f["function"] for f in report["regions"][0]["cpu"]["own_functions"]]
        self.assertEqual(functions[0], "slow_regex")
        self.assertFalse([name for name in functions if "bootstrap" in name or "python3" in name])

    def test_event_loop_names_the_call_that_blocks_it(self):
        report, done = self.profile("loop.py")
        line = first_line(done)
        self.assertIn(named("loop.py", "blocking"), line)
        self.assertIn("sleeps", line)
        self.assertIn("in the event loop's thread", line)
        self.assertIn("asyncio.to_thread", report["verdict"][0]["advice"])
        row = waits(report)[("sleep", "blocking")]
        self.assertEqual(row["count"], 40)
        self.assertTrue(row["event_loop"])

    def test_event_loop_names_cpu_work_that_blocks_it(self):
        report, done = self.profile("hashes.py")
        line = first_line(done)
        self.assertIn(named("hashes.py", "check_password"), line)
        self.assertIn("blocks the event loop for ", line)
        self.assertIn("nothing else runs in the loop", report["verdict"][0]["advice"])
        self.assertEqual([row["kind"] for row in report["verdict"] if row["path"] == "program"], [], "said once")
        self.assertRegex(done.stderr, r"check_password \(hashes\.py:\d+\), in the event loop's thread ")

    def test_annotations_are_lines_of_the_users_files(self):
        """Not of CPython's build, nor of OpenSSL, in which the time is spent."""
        with cases.tempfile.TemporaryDirectory(prefix="rangescope-test-") as folder:
            done = cases.run([f"{BIN_DIR}/rangescope", "profile", "--runs", folder, "-f", "annotations", "--", PYTHON, os.path.join(HERE, "hashes.py")])
        marked = done.stdout.splitlines()
        self.assertTrue(marked, done.stderr)
        self.assertRegex(marked[0], r"^::warning file=[^,]*hashes\.py,line=\d+,title=rangescope::check_password: ")
        self.assertEqual([text for text in marked if "hashes.py" not in text], [])

    def test_script_names_the_command_that_runs_outside_the_ranges(self):
        """A shell that runs a program with ranges, and then another one."""
        report, done = cases.profile(BIN_DIR, ["/bin/sh", "-c", f"{BIN_DIR}/cli_victim; sleep 1"])
        self.assertNotEqual([region["path"] for region in report["regions"]], [["program"]])
        others = {os.path.basename(process["name"]) for process in report["other_processes"]}
        self.assertIn("sleep", others)
        self.assertRegex(done.stderr, r"(?m)^ *sleep +1 +\S+ m?s +-$")

    def test_script_names_its_functions_and_not_the_interpreter(self):
        report, done = self.profile("script.py")
        line = first_line(done)
        self.assertRegex(line, r"^1\. warning: \w+ \(script\.py:\d+\): ")
        functions = {f["function"]: f for f in report["regions"][0]["cpu"]["own_functions"]}
        self.assertIn("total", functions)
        self.assertEqual(f"script.py:{functions['total']['line']}", line_of("script.py", "total"))
        self.assertTrue(all("script.py" in f["file"] for f in functions.values()), functions)

    def test_deadlock_names_the_functions_that_wait_for_each_other(self):
        with tempfile.TemporaryDirectory(prefix="rangescope-test-") as folder:
            command = [f"{BIN_DIR}/rangescope", "profile", "--runs", folder, "--", PYTHON, os.path.join(HERE, "deadlock.py")]
            running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(running.stderr.readline().strip() or "stuck", "stuck")
            cases.spends(0, running.pid)
            cases.time.sleep(2)  # how long it hangs is of no matter, as long as that is most of the run
            running.send_signal(signal.SIGTERM)
            out, err = running.communicate(timeout=cases.PATIENCE_S)
            done = subprocess.CompletedProcess(command, running.returncode, out, err)
        line = first_line(done)
        self.assertIn(named("deadlock.py", "transfer"), line)
        self.assertIn(named("deadlock.py", "report"), line)
        self.assertIn("deadlock", line)

    def test_header_has_cpu_time_memory_and_the_exit_code(self):
        report, done = cases.profile(BIN_DIR, [PYTHON, "-c", "x = bytearray(80_000_000); raise SystemExit(3)"])
        usage = report["run"]["usage"]
        self.assertGreater(usage["peak_rss_bytes"], 80_000_000)
        self.assertGreater(usage["user_ns"] + usage["system_ns"], 0)
        self.assertEqual(report["run"]["exit_code"], 3)
        header = done.stderr.splitlines()[1]
        self.assertRegex(header, r"CPU .* \(user .*, system .*\), \d+\.\d\d CPUs used, peak memory [^,]* \(RSS\), (other programs used [^,]*, )?exit code 3, .*run \S+$")


cases.main()
