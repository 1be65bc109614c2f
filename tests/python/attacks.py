#!/usr/bin/env python3
"""attacks: what pytest's plugin and %%rangescope make of hostile names, cells, outputs and reports, of interrupts, and of a command that
is missing or lies. Usage: attacks.py BIN ROOT"""
import contextlib
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from package import ROOT, cases, need

HOSTILE_TESTS = r"""
import pytest, rangescope
IDS = ["$(touch made)", "`touch made`", "'; touch made; '", 'a"b', "-x", "a::b", "x]y[", "\u00e9\u202e", "a\nb", "../../made", "n" * 300, "%s{}"]

@pytest.mark.rangescope
@pytest.mark.parametrize("value", IDS, ids=IDS)
def test_name(value):
    with rangescope.range(value):
        pass
"""
FAILING_TEST = """
import os, pytest
@pytest.mark.rangescope
def test_one():
    {}
"""
REPORT = '{"schema": "rangescope.report/1", "run": {"id": "x", "exit_code": 0}, "regions": [], "verdict": []}'
LOUD = "print('begin of it'); [print('x' * 1000) for _ in range(20000)]; print('end of it')"


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def write(self, name, text, executable=False):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        if executable:
            os.chmod(name, stat.S_IRWXU)
        return os.path.abspath(name)

    def lying(self, report, code=0, more="pass"):
        """A command that leaves `report`, a Python expression, as the report of its run."""
        return self.write("lying", f"#!{sys.executable}\nimport os, sys\nfor word in sys.argv:\n    if word.startswith('run.dir='):\n"
                          f"        os.makedirs(word[8:])\n        open(word[8:] + '/report.json', 'wb').write({report})\n{more}\nsys.exit({code})\n", True)


class Plugin(InAFolder):
    def pytest(self, *options, tests, **environment):
        need(self, "pytest")
        self.write("test_it.py", tests)
        done = cases.run([sys.executable, "-m", "pytest", "-p", "rangescope.pytest_plugin", "-rA", "-p", "no:cacheprovider", *options],
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        self.assertNotIn("INTERNALERROR", done.stdout + done.stderr)
        return done

    def told(self, tests, **environment):
        """What is said of the one test, which fails, and how: a sentence, no traceback."""
        done = self.pytest("--rangescope", "--rangescope-repeat=1", tests=tests, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("1 failed", done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        return done.stdout

    def test_names_are_names(self):
        done = self.pytest("--rangescope-save", "--rangescope-repeat=1", tests=HOSTILE_TESTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("12 passed", done.stdout)
        self.assertEqual(sorted(os.listdir()), ["rangescope-baselines", "test_it.py"])
        kept = os.listdir("rangescope-baselines")
        self.assertEqual(len(kept), 12)
        self.assertTrue(all(name.replace("-", "").replace("_", "").replace(".", "").isalnum() and not name.startswith("-") for name in kept), kept)

    def test_a_test_that_a_signal_ends_fails(self):
        self.assertIn("the test fails under rangescope", self.told(FAILING_TEST.format("os.kill(os.getpid(), 9)")))

    def test_a_loud_test_is_quoted_and_not_kept(self):
        said = self.told(FAILING_TEST.format(f"{LOUD}; assert 0"))
        self.assertLess(len(said), 300_000)
        self.assertRegex(said, r"\[\d+ bytes are left out\]")
        self.assertIn("1 failed", said)

    def test_no_command(self):
        path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not os.access(f"{part}/rangescope", os.X_OK))
        package = os.path.join(self.folder, "package")  # none is beside it there
        os.makedirs(package)
        os.symlink(f"{ROOT}/python/rangescope", f"{package}/rangescope")
        for lost in (self.folder, "/nowhere/rangescope"):
            done = self.pytest("--rangescope", tests=FAILING_TEST.format("pass"), RANGESCOPE=lost, PATH=path, PYTHONPATH=package)
            if "the command rangescope was not found" not in done.stdout:  # a build beside the checkout
                self.assertIn("make its baseline first", done.stdout)
            self.assertNotIn("Traceback", done.stdout)

    def test_a_command_that_lies(self):
        body = FAILING_TEST.format("pass")
        for report, sentence in (("b'{\"schema\": \"rangescope.report/1\", \"run'", "report.json: Unterminated string"), ("b''", "report.json: Expecting value"),
                                 ("b'\\x80\\x81{'", "report.json: "), ("b'[' * 100000", "report.json: "), ("b'[]'", "this is not a report of rangescope"),
                                 ("b'{\"schema\": \"rangescope.report/1\", \"run\": 7}'", "the test fails under rangescope")):
            self.assertIn(sentence, self.told(body, RANGESCOPE=self.lying(report)), report)
        gates = {"print('{\"verdict\": \"passed\"')": "rangescope gate: ", "print('{}')": "None: None", "print('{\"checks\": 7}')": "checks of this report is no list",
                 "print('{\"checks\": [7, {}], \"verdict\": [], \"text\": {}}')": "[]: {}", "print('no')": "rangescope gate: exit code"}
        for said, sentence in gates.items():
            lying = self.lying(f"b'{REPORT}'", "81 if sys.argv[1] == 'gate' else 0", f"if sys.argv[1] == 'gate':\n    {said}")
            self.assertIn(sentence, self.told(body, RANGESCOPE=lying), said)


class Magic(InAFolder):
    def run_cell(self, line, cell):
        import rangescope.magic
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run = rangescope.magic.rangescope(line, cell)
        return run, printed.getvalue()

    def test_a_cell_is_text(self):
        cell = "print('''it's\n\"quoted\"''')\nprint(\"$(touch made) `touch made` \\\\ \u00e9\u202e \\0\".encode())\n\n\n# no end of line"
        run, said = self.run_cell("", cell)
        self.assertEqual((run.exit_code, os.path.exists("made")), (0, False))
        self.assertTrue(said.startswith("it's\n\"quoted\"\n"), said)
        for broken in ("'", "\ud800", "if"):
            run, said = self.run_cell("", broken)
            self.assertEqual(run.exit_code, 1, broken)
            self.assertIn("SyntaxError", said)

    def test_options_are_options(self):
        import rangescope
        for line, sentence in (("--include 'a", "No closing quotation"), ("-- touch made", "'--' is not an option"), ("--no-such", "unknown option")):
            with self.assertRaisesRegex((ValueError, rangescope.CommandError), sentence if line[:4] != "--no" else "exit code 64"):
                self.run_cell(line, "1")
        self.assertFalse(os.path.exists("made"))

    def test_a_loud_cell_is_printed_in_part(self):
        run, said = self.run_cell("", LOUD)
        self.assertEqual(run.exit_code, 0)
        self.assertLess(len(said), 1_100_000)
        self.assertTrue(said.startswith("begin of it\n") and said.endswith("end of it\n"))
        self.assertRegex(said, r"\n\[\d+ bytes are left out\]\n")

    def test_an_interrupt_ends_the_program_too(self):
        """As Jupyter interrupts a kernel: the signal may come to Python alone. Programs that ignore it are ended after a while."""
        for stubborn in ("", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"):
            with contextlib.suppress(FileNotFoundError):
                os.remove("pid")
            script = self.write("script.py", "import rangescope.magic, rangescope.runs\nrangescope.runs.PATIENCE = 2\n"
                                f"cell = {stubborn!r} + 'import os, time; open(\"new\", \"w\").write(str(os.getpid())); "
                                "os.rename(\"new\", \"pid\"); print(\"said\", flush=True); time.sleep(600)'\nrangescope.magic.rangescope('', cell)\n")
            process = subprocess.Popen([sys.executable, script], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 600
            while not os.path.exists("pid") and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            with open("pid") as file:
                program = int(file.read())
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
            self.assertIn("KeyboardInterrupt", err)
            self.assertIn("said", out, "what it printed is printed")
            while os.path.exists(f"/proc/{program}") and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertFalse(os.path.exists(f"/proc/{program}"), f"the program runs on (ignoring the signal: {bool(stubborn)})")


if __name__ == "__main__":
    cases.main()
