#!/usr/bin/env python3
"""Options that choose the run's directory or keep old runs change nothing for the program: it runs once, and has the
descriptors, the output and the reader of its output that it has by itself. Usage: unnoticed.py BIN_DIR"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
TOOL = os.path.join(BIN, "rangescope")
WAYS = ([], ["--keep", "3"], ["--run-dir", "mine"], ["--timeout", "1000s"])


class Unnoticed(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.realpath(temporary.name)

    def ways(self, *program):
        """(name, command line) of the program under each set of options."""
        for words in WAYS:
            subprocess.run(["rm", "-rf", "mine"], cwd=self.folder, check=True)
            with self.subTest(" ".join(words)):
                yield [TOOL, "profile", "-q", *words, "--", *program]

    def test_it_runs_once(self):
        for argv in self.ways("sh", "-c", "echo >>starts"):
            done = cases.run(argv, cwd=self.folder)
            self.assertIn(done.returncode, (0, 80), done.stderr)  # no NVTX in it; 80 where a range is asked for or the CPU not sampled
            with open(os.path.join(self.folder, "starts"), encoding="utf-8") as f:
                self.assertEqual(f.read(), "\n")
            os.remove(os.path.join(self.folder, "starts"))

    def test_its_output_is_no_copy(self):
        for argv in self.ways("readlink", "/proc/self/fd/1", "/proc/self/fd/2"):
            with open(os.path.join(self.folder, "out"), "w+", encoding="utf-8") as out, open(os.path.join(self.folder, "err"), "w", encoding="utf-8") as err:
                subprocess.run(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False)
                out.seek(0)
                self.assertEqual(out.read().split(), [os.path.join(self.folder, "out"), os.path.join(self.folder, "err")])

    def test_a_reader_that_goes_away_ends_it(self):
        for argv in self.ways("yes"):
            running = subprocess.Popen(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertEqual(running.stdout.readline(), b"y\n")
            running.stdout.close()
            self.assertNotEqual(running.wait(600), 0)

    def test_a_child_in_the_background_writes_to_the_end(self):
        for argv in self.ways("sh", "-c", "(while [ ! -e go ]; do sleep 0.05; done; echo late) & echo early"):
            running = subprocess.Popen(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertEqual(running.stdout.readline(), b"early\n")
            running.wait(600)
            with open(os.path.join(self.folder, "go"), "w", encoding="utf-8"):
                pass
            self.assertEqual(running.stdout.read(), b"late\n")
            running.stdout.close()
            os.remove(os.path.join(self.folder, "go"))

    def test_it_has_no_descriptors_of_ours(self):
        program = ["sh", "-c", "ls /proc/$$/fd"]
        bare = cases.run(program, cwd=self.folder).stdout
        for argv in self.ways(*program):
            self.assertEqual(cases.run(argv, cwd=self.folder).stdout, bare)


if __name__ == "__main__":
    cases.main()
