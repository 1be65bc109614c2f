#!/usr/bin/env python3
"""watch: the live table, and that the program ends as it would without it. Usage: watch.py BIN_DIR PROGRAM"""
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases

BIN, PROGRAM = sys.argv[1], sys.argv[2]


def watch(folder, *argv):
    return cases.run([f"{BIN}/rangescope", "profile", "--watch-every", "100ms", "--runs", folder, *argv])


class Watch(unittest.TestCase):
    def test_pictures_grow_and_the_last_table_is_the_run(self):
        with tempfile.TemporaryDirectory(prefix="rangescope-watch-") as folder:
            done = watch(folder, "--depth", "1", "--", PROGRAM)
            self.assertEqual(done.returncode, 0, done.stderr)
            pictures = re.split(r"^after [\d.]+ s$", done.stderr, flags=re.M)[1:]
            self.assertGreaterEqual(len(pictures), 2, done.stderr)
            # A row of ranges that have not ended yet has no share and no count.
            counts = [int(row.group(1)) for row in (re.search(r"^decode .*% +(\d+)", p, re.M) for p in pictures) if row]
            self.assertGreater(len(counts), 0, done.stderr)
            self.assertEqual(counts, sorted(counts))
            self.assertNotIn("\x1b", done.stderr)  # nothing is erased
            run, = [entry.path for entry in os.scandir(folder)]
            self.assertIn(f"run kept in {run}", done.stderr)
            report = cases.run([f"{BIN}/rangescope", "report", run, "--depth", "1"])
            decode = lambda text: re.findall(r"^decode .*% +(\d+)", text, re.M)[-1]
            self.assertEqual(decode(done.stderr), decode(report.stdout))

    def test_exit_code_is_the_programs(self):
        with tempfile.TemporaryDirectory(prefix="rangescope-watch-") as folder:
            self.assertEqual(watch(folder, "--", "sh", "-c", "exit 3").returncode, 3)
            self.assertEqual(watch(folder, "--", "sh", "-c", "kill -TERM $$").returncode, -15)
            self.assertEqual(watch(folder).returncode, 64)
            for none in (watch(folder, "--", "/nonexistent"), cases.run([f"{BIN}/rangescope", "profile", "--output", folder, "/nonexistent"])):
                self.assertEqual(none.returncode, 66)
                self.assertIn("cannot run '/nonexistent'", none.stderr)
                self.assertNotIn("run kept", none.stderr)


if __name__ == "__main__":
    cases.main()
