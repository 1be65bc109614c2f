#!/usr/bin/env python3
"""plugin: pytest with rangescope.pytest_plugin: measured tests, baselines, a regression. Usage: plugin.py BIN ROOT"""
import os
import re
import sys
import tempfile
import unittest

from package import OWN_CLOCK, cases, need

TESTS = """
import ctypes, os, pytest, rangescope

clock = ctypes.CDLL(None)
clock.worked.argtypes = [ctypes.c_longlong]
clock.worked(0)

@pytest.fixture
def tokens():
    return 2

@pytest.mark.rangescope(regions=["test > decode"], options=["--metric", "occurrences", "--metric", "wall_ns.min", "--max-regression", "100%"])
@pytest.mark.parametrize("name", ["a[1]", "b > c"])
def test_decode(name, tokens, tmp_path):
    with rangescope.range("decode"):
        clock.worked(int(os.environ["WORK_NS"]))
    assert tokens == 2

def test_other():
    assert rangescope.backend == "none"

class TestMethods:
    @pytest.mark.rangescope
    def test_fails(self):
        assert "FAIL" not in os.environ
"""


class Plugin(unittest.TestCase):
    def setUp(self):
        need(self, "pytest")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(f"{self.folder.name}/test_it.py", "w") as f:
            f.write(TESTS)

    def pytest(self, *options, work_ns="1000000", **environment):
        done = cases.run([sys.executable, "-m", "pytest", "-p", "rangescope.pytest_plugin", "-rA", *options], cwd=self.folder.name,
                         env={**os.environ, "LD_PRELOAD": OWN_CLOCK, "WORK_NS": work_ns, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        passed = set(re.findall(r"^PASSED (test_it.py::.*)$", done.stdout, re.M))
        failed = {line.split(" - ")[0] for line in re.findall(r"^FAILED (test_it.py::.*)$", done.stdout, re.M)}
        self.assertEqual(len(passed | failed), 4, f"{done.stdout}{done.stderr}")
        return {name.rpartition("::")[2] for name in failed}, done.stdout

    def test_without_the_option_they_are_tests(self):
        failed, said = self.pytest()
        self.assertEqual(failed, set())
        self.assertNotIn("baseline", said)

    def test_baseline_and_regression(self):
        decodes = {"test_decode[a[1]]", "test_decode[b > c]"}
        repeat = "--rangescope-repeat=4"
        failed, said = self.pytest("--rangescope", repeat, FAIL="1")
        self.assertEqual(failed, decodes | {"test_fails"})
        self.assertIn("make its baseline first", said)
        self.assertIn("the test fails under rangescope", said)
        self.assertIn('assert "FAIL" not in os.environ', said, "what pytest printed there is shown")
        failed, said = self.pytest("--rangescope-save", repeat)
        self.assertEqual(failed, set(), said)
        self.assertEqual(len(os.listdir(f"{self.folder.name}/rangescope-baselines")), 3)
        failed, said = self.pytest("--rangescope", repeat, work_ns="20000000")
        self.assertLessEqual(decodes, failed)
        self.assertRegex(said, r"regressed: \d of 4 values regressed \(limit 100 %\)")
        self.assertRegex(said, r"test > decode wall_ns.min: \+1,?900")


if __name__ == "__main__":
    cases.main()
