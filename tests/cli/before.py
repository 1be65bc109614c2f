#!/usr/bin/env python3
"""What can be known to be wrong before the program runs is refused before it runs. Usage: before.py BIN_DIR"""
import os
import sys

import commands
from commands import VICTIM, cases


class Before(commands.InAFolder):
    def test_a_report_that_cannot_be_written_stops_before_the_program(self):
        for where in ("nowhere/report.md", "."):
            done = self.tool("profile", "-o", where, "--", VICTIM)
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertEqual((done.stdout, self.runs()), ("", []))
        self.assertEqual(self.tool("profile", "-f", "nothing", "--", VICTIM).returncode, 64)
        self.assertEqual(self.runs(), [])

    def test_wrong_values_are_refused_before_the_program_runs(self):
        os.mkfifo(os.path.join(self.folder, "pipe"))
        with open(os.path.join(self.folder, "large"), "w", encoding="utf-8") as file:
            file.write("a=b.*\n" * (1 << 18))
        for options, what in ((["--phases", "pipe"], "pipe: "), (["--phases", "large"], "large: "),
                              (["--sort", "time"], "no region has a value named 'time'"), (["--sort", "bound"], "is text, not a number"),
                              (["--columns", "wal"], "did you mean 'wall'"), (["--columns", "wall,gpu.bsy_ns"], "'gpu.busy_ns'"),
                              (["--metrics", "rofline"], "did you mean 'roofline'"), (["--device", "h2000"], "no peaks are known"),
                              (["-o", "none/x.json"], "its folder does not exist"), (["--repeat", "0"], "is not a number of runs"),
                              (["--include", "step", "--exclude", "step"], "'step' is included and excluded"),
                              (["--include", "decode", "--exclude", "decode*"], "'decode*' excludes it"),
                              (["--kernel", "gemm", "--exclude-kernel", "gemm"], "kernel 'gemm' is included and excluded"),
                              (["--watch", "--repeat", "3"], "cannot be watched"), (["--openmetrics", "0", "--repeat", "auto"], "cannot be watched"),
                              (["--width", "3"], "Write 32 or more columns, or 0 for no limit"), (["--nest", ""], "separates no levels"),
                              (["--timeout", "0"], "'0' is not a duration of at least 1ms"), (["--for", "0"], "'0' is not a time from 1.000 ms"),
                              (["report.width=3"], "is not the width of a table"), (["run.timeout=0s"], "is not a duration of at least 1ms"),
                              (["--include", "decode >"], "a range is missing"), (["--functions", "a="], "names no function"),
                              (["--include", "regex:("], "--include")):
            done = self.tool("profile", *options, "--", "touch", "ran")
            self.assertIn(done.returncode, (64, 74, 78), options)
            self.assertIn(what, done.stderr, options)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")), options)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "rangescope-runs")), options)
        # Which metrics there are, only the end of the run knows: its table is not lost for one.
        done = self.tool("profile", "--columns", "metrics.nosuch,wall", "--sort", "metrics.nosuch", "--", VICTIM)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no region has a value named 'metrics.nosuch': the table is without it\n", done.stderr)
        self.assertRegex(done.stderr, r"(?m)^range +wall$")
        done = self.tool("profile", "--columns", "wall,median", "--columns", "max", "--", VICTIM)
        self.assertRegex(done.stderr, r"(?m)^range +wall +median +max$", done.stderr)

    def test_what_is_not_on_path_has_a_hint_that_works(self):
        bin_folder = os.path.join(self.folder, "bin")
        os.mkdir(bin_folder)
        for name in ("bin/python3", "here"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n")
            os.chmod(os.path.join(self.folder, name), 0o755)
        self.env["PATH"] = bin_folder
        for program, hint in (("python", "Write python3"), ("here", "Write ./here for the file"), ("no-such", "Check its name")):
            done = self.tool("profile", "--", program, "x")
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn(f"there is no program '{program}' on PATH\nrangescope: hint: {hint}", done.stderr)

    def test_what_is_not_written_is_refused_before_the_program_runs(self):
        for words in (["report", "latest"], ["profile"]):
            done = self.tool(*words, "-o", "x.pdf", *(["--", "touch", "ran"] if words == ["profile"] else []))
            self.assertEqual(done.returncode, 64)
            self.assertIn("there is no output format .pdf", done.stderr)
            self.assertIn("-o report.html", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))

    def test_a_process_that_runs_cannot_be_profiled(self):
        for words in (["-p", "1"], ["--pid", "1"], ["--pid=1"]):
            done = self.tool("profile", *words)
            self.assertEqual(done.returncode, 64)
            self.assertIn("For a running process: rangescope attach 1\n", done.stderr)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
