#!/usr/bin/env python3
"""ranges: the helpers for those who write ranges, as rangescope sees their programs. Usage: ranges.py BIN_DIR ROOT CLIENT"""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import cases  # noqa: E402

BIN, ROOT, CLIENT = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))


def counts(report):
    return {key: region["occurrences"] for key, region in cases.aggregate(report).items()}


class Ranges(unittest.TestCase):
    def test_cpp(self):
        report, done = cases.profile(BIN, [f"{BIN}/ranges_program"])
        self.assertIn("2 1\n", done.stdout, "synchronized twice, left early once")
        found = counts(report)
        self.assertEqual(found[("", "push_pop", ("step",))], 2)
        self.assertEqual(found[("LLM", "push_pop", ("layer",))], 2)
        self.assertEqual(found[("", "push_pop", ("early",))], 1)

    def test_a_time_namespace_has_the_machines_clock(self):
        """A process whose clock stands elsewhere lies beside the others: the run takes seconds, not a day."""
        within = ["unshare", "--time", "--monotonic", "100000", "--fork"]
        if os.geteuid() != 0 or not shutil.which("unshare") or cases.run([*within, "true"]).returncode != 0:
            self.skipTest("a time namespace takes root and unshare")
        program = f"{BIN}/ranges_program"
        report, _ = cases.profile(BIN, ["sh", "-c", f"{program}; {' '.join(within)} {program}"])
        self.assertEqual(counts(report)[("", "push_pop", ("step",))], 4)
        self.assertLess(report["run"]["duration_ns"], 50_000e9)
        self.assertEqual(report["losses"], [])

    def test_cpp_payloads(self):
        with tempfile.TemporaryDirectory() as folder:
            cases.run([f"{BIN}/rangescope", "profile", "-q", f"run.dir={folder}/run", "--", f"{BIN}/ranges_program"])
            done = cases.run([f"{BIN}/rangescope", "report", f"{folder}/run", "--bucket-by", "payload", "-f", "json"])
        found = counts(json.loads(done.stdout))
        self.assertEqual([found[("", "push_pop", (f"step [{n}]",))] for n in (3, 5)], [1, 1])

    def python(self, *path):
        environment = dict(os.environ, PYTHONPATH=":".join((f"{ROOT}/python", *path)), NVTX_CLIENT=CLIENT, PYTHONDONTWRITEBYTECODE="1")
        return cases.run([sys.executable, f"{HERE}/program.py"], env=environment)

    def test_python_with_nvtx(self):
        done = self.python(HERE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), ["passes through", "nvtx", str([
            ("push", "step", "LLM", 3), ("push", "forward", None, None), ("push", "forward", None, None), ("pop", None), ("pop", None),
            ("pop", "LLM"), ("push", "fails", None, None), ("pop", None)])])

    def test_python_ranges_are_recorded(self):
        os.environ.update(PYTHONPATH=f"{ROOT}/python:{HERE}", NVTX_CLIENT=CLIENT, PYTHONDONTWRITEBYTECODE="1")
        report, _ = cases.profile(BIN, [sys.executable, f"{HERE}/program.py"])
        found = counts(report)
        self.assertEqual(found[("", "push_pop", ("step", "forward", "forward"))], 1)
        self.assertEqual(found[("", "push_pop", ("fails",))], 1)

    def test_python_without_any(self):
        done = self.python()
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, "passes through"), done.stderr)
        self.assertIn(done.stdout.splitlines()[1], ("none", "torch", "nvtx"))


cases.main()
