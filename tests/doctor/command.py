#!/usr/bin/env python3
"""`rangescope doctor --explain` against the real nsys 2022.4.2 and ncu 2022.3.0: broken lines capture nothing or are refused,
and the lines that are printed in their place capture something (nsys) or are taken (ncu, which needs a GPU for more).

Usage: command.py BIN_DIR. The tools are looked for in $RANGESCOPE_TOOLS/bin; without them those tests are skipped.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
TOOLS = os.path.join(os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools")), "bin")
PROGRAM = os.path.join(BIN, "nsys_program")

# nsys lines over tests/nsys/program.cpp, which has the ranges step, load, compute ... (plain strings) and `registered` in the
# domain `library`. {p} is the program. What is wrong, and the line itself.
NSYS = [
    ("unregistered_strings", "nsys profile {q} --capture-range=nvtx --nvtx-capture=step --capture-range-end=stop {p}"),
    ("slash_in_capture", "nsys profile {q} --capture-range=nvtx --nvtx-capture=step/ --capture-range-end=stop -e NSYS_NVTX_PROFILER_REGISTER_ONLY=0 {p}"),
    ("reversed_domain", "nsys profile {q} --capture-range=nvtx --nvtx-capture='*@step' --capture-range-end=stop -e NSYS_NVTX_PROFILER_REGISTER_ONLY=0 {p}"),
    ("placeholder_capture", "nsys profile {q} --capture-range=nvtx --nvtx-capture=range {p}"),
    ("capture_without_range", "nsys profile {q} --capture-range=nvtx {p}"),
    ("pattern_in_capture", "nsys profile {q} --capture-range=nvtx --nvtx-capture='st*' {p}"),
    ("blank_in_list", "nsys profile --sample=none --cpuctxsw=none --trace nvtx, osrt {p}"),
    ("double_dash", "nsys profile {q} -- {p}"),
    ("value_missing", "nsys profile {q} -f {p}"),
]
QUICK = "--trace=nvtx --sample=none --cpuctxsw=none"

# ncu lines that it refuses, or that would measure nothing; /bin/true stands for the program.
NCU = [
    ("unknown_option", "ncu --kernel-replay-mode range /bin/true"),
    ("invalid_value", "ncu --target-processes 1 /bin/true"),
    ("no_nvtx", "ncu --nvtx-include A/ /bin/true"),
    ("bad_expression", "ncu --nvtx --nvtx-include @A/ /bin/true"),
    ("kernel_id", "ncu --kernel-id 5::10::2 /bin/true"),
    ("mode_conflict", "ncu --replay-mode range --kernel-name gemm /bin/true"),
    ("mode_conflict", "ncu --app-replay-match all /bin/true"),
    ("repeated_option", "ncu --set full --set roofline /bin/true"),
    ("needs_option", "ncu --print-summary per-nvtx /bin/true"),
    ("double_dash", "ncu -- /bin/true"),
    ("foreign_verb", "ncu profile /bin/true"),
    ("unknown_section", "ncu --section NoSuch /bin/true"),
    ("unknown_set", "ncu --set brief /bin/true"),
]
REFUSED = ("unrecognised option", "is invalid", "requires --nvtx", "Invalid ", "is not supported", "more than once", "Use option",
           "ambiguous", "does not exist", "did not match any section", "No metrics to collect")


def explain(line, *options, **more):
    environment = dict(os.environ, RANGESCOPE_NSYS=f"{TOOLS}/nsys", RANGESCOPE_NCU=f"{TOOLS}/ncu")
    return cases.run([f"{BIN}/rangescope", "doctor", "--explain", *options, line], env=environment, **more)


def explained(line):
    done = explain(line, "--json")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "rangescope.doctor/1" and answer["asked"] == "command", answer
    wrong = [f["id"].replace("command.", "") for f in answer["findings"] if f["verdict"] in ("warn", "fail")]
    return wrong, answer.get("command"), done.returncode


def captured(line):
    """Output and reports of a line that should capture something. nsys 2022.4.2 itself fails now and then (`Connection to the
    Agent lost`, `sem_open`) where several sessions run on one machine: three tries."""
    for _ in range(3):
        with tempfile.TemporaryDirectory(prefix="rangescope-doctor-") as folder:
            said, reports = shell(line, folder)
        if reports:
            break
    return said, reports


def shell(line, folder):
    """What the line does when a shell runs it: its output, and the reports that it left."""
    environment = dict(os.environ, PATH=f"{TOOLS}:{os.environ['PATH']}", TMPDIR=folder, LC_ALL="C")
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600)
    return done.stdout, [f for f in os.listdir(folder) if f.startswith("report") and f.endswith((".qdstrm", ".nsys-rep"))]


class Plain(unittest.TestCase):
    """What needs no tool."""

    def test_the_last_line_is_the_command(self):
        done = cases.run([f"{BIN}/rangescope", "doctor", "--explain", "ncu --kernel-replay-mode range ./app"],
                         env={"PATH": "/nowhere", "HOME": "/nowhere"})
        self.assertEqual(done.stdout.splitlines()[-1], "ncu --replay-mode range ./app")
        self.assertIn("fail: command.unknown_option:", done.stdout)
        self.assertEqual(done.returncode, 78)

    def test_words_as_arguments(self):
        words = ["nsys", "profile", "--nvtx-capture=a b", "--capture-range=nvtx", "./app", "--json"]
        for argv in (words, ["--", *words]):
            done = cases.run([f"{BIN}/rangescope", "doctor", "--explain", *argv])
            self.assertEqual(done.stdout.splitlines()[-1],
                             "nsys profile '--nvtx-capture=a b' --capture-range=nvtx "
                             "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0 ./app --json".replace("'--nvtx-capture=a b'",
                                                                                                 "--nvtx-capture='a b'"))
            self.assertEqual(done.returncode, 0)

    def test_right_lines(self):
        done = explain("ncu --nvtx --nvtx-include decode/ ./app")
        self.assertEqual(done.returncode, 0)
        self.assertIn("No problems found", done.stdout)

    def read(self, log):
        return subprocess.run([f"{BIN}/rangescope", "doctor", "-"], input=log, capture_output=True, text=True, timeout=600)

    def test_a_log_names_the_cause_and_the_line(self):
        log = ("$ ncu --nvtx --nvtx-include decode ./app\n==PROF== Connected to process 7 (/app)\n==WARNING== No kernels were profiled.\n"
               "==WARNING== Note that specified NVTX include expressions match only start/end ranges.\n")
        done = self.read(log)
        self.assertEqual(done.stdout.splitlines()[-1], "ncu --nvtx --nvtx-include decode/ --nvtx-include decode ./app")
        self.assertIn("command.missing_slash", done.stdout)
        self.assertIn("fail: ncu.only_start_end", done.stdout)
        self.assertEqual(done.returncode, 80)
        file = os.path.join(HERE, "..", "golden", "ncu-out", "r_graph.out")
        done = cases.run([f"{BIN}/rangescope", "doctor", file, "--explain", "ncu --nvtx --nvtx-include decode/ --replay-mode range ./app"])
        self.assertEqual(done.stdout.splitlines()[-1], "ncu --nvtx --nvtx-include decode/ --replay-mode app-range ./app")
        self.assertIn("fail: ncu.unsupported_api", done.stdout)
        done = self.read("epoch 1 loss 0.25\n")
        self.assertEqual((done.returncode, done.stdout), (65, ""))

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidiactl"), "there is a driver here")
    def test_a_program_that_wants_a_driver(self):
        program = "echo 'RuntimeError: Found no NVIDIA driver on your system.' >&2; echo 'hint: install one' >&2; exit 1"
        done = cases.run([f"{BIN}/rangescope", "doctor", "--json", "--", "sh", "-c", program])
        wrong = [f for f in json.loads(done.stdout)["findings"] if f["verdict"] == "fail"]
        self.assertEqual([f["id"] for f in wrong], ["machine.no_driver", "program.failed"])
        self.assertIn("its last words: RuntimeError: Found no NVIDIA driver", wrong[1]["found"])

    def test_refusals(self):
        for argv in (["--explain"], ["--explain", "ls -l"], ["--explain", "ncu 'x"], ["--bogus"], ["what"]):
            done = cases.run([f"{BIN}/rangescope", "doctor", *argv])
            self.assertEqual(done.returncode, 64, argv)
            self.assertIn("hint", done.stderr)


@unittest.skipUnless(os.path.exists(f"{TOOLS}/nsys"), f"no nsys in {TOOLS} (tests/tools/fetch.sh)")
class Nsys(unittest.TestCase):
    def test_cures_capture(self):
        for cause, pattern in NSYS:
            line = pattern.format(q=QUICK, p=PROGRAM)
            with self.subTest(line=line):
                wrong, corrected, code = explained(line)
                self.assertIn(cause, wrong)
                self.assertEqual(explained(corrected)[0], [])
                with tempfile.TemporaryDirectory(prefix="rangescope-doctor-") as folder:
                    said, reports = shell(line, folder)
                    self.assertEqual(reports, [], f"the broken line captured: {said}")
                said, reports = captured(corrected)
                self.assertTrue(reports, f"{corrected}: {said}")

    def test_not_gated(self):
        wrong, corrected, _ = explained(f"nsys profile {QUICK} --nvtx-capture=registered@library --capture-range-end=stop {PROGRAM}")
        self.assertEqual(wrong, ["capture_not_gated"])
        said, reports = captured(corrected)
        self.assertTrue(reports, said)
        wrong, _, _ = explained(f"nsys profile {QUICK} --capture-range=nvtx --nvtx-capture=registered@library --capture-range-end=stop {PROGRAM}")
        self.assertEqual(wrong, [])


@unittest.skipUnless(os.path.exists(f"{TOOLS}/ncu"), f"no ncu in {TOOLS} (tests/tools/fetch.sh)")
class Ncu(unittest.TestCase):
    def test_cures_are_taken(self):
        for cause, line in NCU:
            with self.subTest(line=line), tempfile.TemporaryDirectory(prefix="rangescope-doctor-") as folder:
                wrong, corrected, code = explained(line)
                self.assertIn(cause, wrong)
                self.assertEqual(code, 78)
                said, _ = shell(line, folder)
                self.assertTrue(any(text in said for text in REFUSED), f"{line} is taken: {said}")
                said, _ = shell(corrected, folder)
                self.assertFalse(any(text in said for text in REFUSED), f"{corrected}: {said}")


if __name__ == "__main__":
    cases.main()
