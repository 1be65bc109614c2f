#!/usr/bin/env python3
"""watch: the live table, and that the program ends as it would without it. Usage: watch.py BIN_DIR ROOT"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases

BIN, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WATCHED = [f"{BIN}/rangescope", "profile", "--watch-every", "100ms"]
ROW = r"^decode .*% +([\d,]+)"  # of ranges that have ended: others have no share and no count
# Ends when the file `end` is there.
PROGRAM = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import rangescope
while not os.path.exists("end"):
    with rangescope.range("decode"), rangescope.range("layer"):
        time.sleep(0.002)
"""


# Works in one function, and ends when the file `end` is there.
RUNNING = """
import os
def busy_in_a_function():
    return sum(number * number for number in range(100_000))
print("running", flush=True)
while not os.path.exists("end"):
    busy_in_a_function()
"""


def watch(folder, *argv):
    return cases.run([*WATCHED, "--runs", folder, *argv])


class Watch(unittest.TestCase):
    def test_pictures_grow_and_the_last_table_is_the_run(self):
        with tempfile.TemporaryDirectory(prefix="rangescope-watch-") as folder:
            process = subprocess.Popen([*WATCHED, "--runs", f"{folder}/runs", "--depth", "1", "--", sys.executable, "-c", PROGRAM, f"{ROOT}/python"],
                                       cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            shown = ""
            while len(re.findall(ROW, shown, re.M)) < 3:
                line = process.stderr.readline()
                self.assertTrue(line, shown)
                shown += line
            open(f"{folder}/end", "w", encoding="utf-8").close()
            shown += process.stderr.read()
            process.stderr.close()
            self.assertEqual(process.wait(cases.PATIENCE_S), 0, shown)
            pictures = re.split(r"^after [\d.]+ s$", shown, flags=re.M)[1:]
            counts = [int(row.group(1).replace(",", "")) for row in (re.search(ROW, picture, re.M) for picture in pictures) if row]
            self.assertGreaterEqual(len(counts), 3, shown)
            self.assertEqual(counts, sorted(counts))
            self.assertNotIn("\x1b", shown)  # nothing is erased
            run, = [entry.path for entry in os.scandir(f"{folder}/runs")]
            self.assertIn(f"run kept in {os.path.relpath(run, folder)}", shown)
            report = cases.run([f"{BIN}/rangescope", "report", run, "--depth", "1"])
            last = lambda text: re.findall(ROW, text, re.M)[-1]
            self.assertEqual(last(shown), last(report.stdout))

    def test_a_process_that_runs_already(self):
        with tempfile.TemporaryDirectory(prefix="rangescope-watch-") as folder:
            program = subprocess.Popen([sys.executable, "-c", RUNNING], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            self.addCleanup(program.kill)
            with program.stdout:
                self.assertEqual(program.stdout.readline(), "running\n")
                watching = subprocess.Popen([f"{BIN}/rangescope", "attach", str(program.pid), "--watch-every", "100ms", "--runs", f"{folder}/runs"],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                shown = ""
                while len(re.findall(r"^after [\d.]+ s$", shown, re.M)) < 3 or "busy_in_a_function" not in shown:
                    line = watching.stderr.readline()
                    self.assertTrue(line, shown)
                    shown += line
                open(f"{folder}/end", "w", encoding="utf-8").close()
                table, rest = watching.communicate(timeout=cases.PATIENCE_S)
                self.assertEqual(watching.returncode, 0, shown + rest)
                self.assertEqual(program.wait(cases.PATIENCE_S), 0)
            self.assertIn("busy_in_a_function", table)  # the whole window, once, on standard output
            self.assertIn("run kept in ", rest)

    def test_exit_code_is_the_programs(self):
        with tempfile.TemporaryDirectory(prefix="rangescope-watch-") as folder:
            self.assertEqual(watch(folder, "--", "sh", "-c", "exit 3").returncode, 3)
            self.assertEqual(watch(folder, "--", "sh", "-c", "kill -TERM $$").returncode, -15)
            self.assertEqual(watch(folder).returncode, 64)
            for none in (watch(folder, "--", "/nonexistent"), cases.run([f"{BIN}/rangescope", "profile", "--runs", folder, "/nonexistent"])):
                self.assertEqual(none.returncode, 66)
                self.assertIn("cannot run '/nonexistent'", none.stderr)
                self.assertNotIn("run kept", none.stderr)


if __name__ == "__main__":
    cases.main()
