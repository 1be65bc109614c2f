#!/usr/bin/env python3
"""Logs of captures that failed, as people posted them: each has its cause, and nothing else. Usage: logs.py BIN_DIR"""
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import cases  # noqa: E402

TOOL, LOGS = f"{os.path.abspath(sys.argv[1])}/rangescope", f"{HERE}/logs"


class Logs(unittest.TestCase):
    def causes(self, path):
        done = cases.run([TOOL, "doctor", "--json", path])
        if not done.stdout:
            return [], done
        findings = json.loads(done.stdout)["findings"]
        return [finding for finding in findings if finding["verdict"] != "ok"], done

    def causes_of_text(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as log:
            log.write(text)
            log.flush()
            return self.causes(log.name)

    def test_posted_messages(self):
        with open(f"{LOGS}/messages.tsv", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
        self.assertGreater(len(rows), 20)
        for cause, text in rows:
            with self.subTest(text=text):
                found, done = self.causes_of_text(text.replace("\\n", "\n"))
                self.assertEqual([finding["id"] for finding in found], [cause], done.stderr)
                self.assertTrue(found[0]["hint"])
                self.assertNotEqual(done.returncode, 65)

    def check(self, log, cause, words=""):
        found, done = self.causes(f"{LOGS}/{log}")
        self.assertTrue(found, done.stderr)
        self.assertEqual(found[0]["id"], cause)
        self.assertIn(words, json.dumps(found[0]))

    def test_the_programs_own_failure_comes_first(self):
        self.check("L1_program_failed.log", "ncu.program_failed", "returned an error code (1)")
        self.check("L17_program_failed_cuda_init.log", "cuda.old_driver", "API call is not supported")
        found, _ = self.causes_of_text("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
                                       "ValueError: bad shape\n==ERROR== The application returned an error code (1).\n"
                                       "==WARNING== No kernels were profiled.\n")
        self.assertEqual([finding["id"] for finding in found], ["cuda.program_failed"])
        self.assertIn("ValueError: bad shape", json.dumps(found))

    def test_metrics_of_another_architecture(self):
        self.check("L5_metrics.log", "ncu.unknown_metric", "another GPU architecture")

    def test_a_driver_that_does_not_fit(self):
        self.check("L18_driver.log", "ncu.old_tool")

    def test_prose_is_no_command(self):
        found, done = self.causes(f"{LOGS}/L9_prose_taken_for_command.log")
        self.assertEqual([finding["id"] for finding in found], ["ncu.unknown_error"], done.stderr)
        self.assertNotIn("command.version", done.stdout)

    def test_finished_collectives_and_prose_are_no_cause(self):
        for text in ("==PROF== Profiling \"ncclKernel_AllReduce\" - 0: 0%....50%....100% - 38 passes\n",
                     "Killed 3 idle workers\n"):
            found, done = self.causes_of_text(text)
            self.assertEqual((found, done.returncode), ([], 65), text)


if __name__ == "__main__":
    cases.main()
