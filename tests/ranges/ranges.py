#!/usr/bin/env python3
"""ranges: the helpers for those who write ranges, as rangescope sees their programs. Usage: ranges.py BIN_DIR ROOT"""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import cases  # noqa: E402

BIN, ROOT = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))


def counts(report):
    return {key: region["occurrences"] for key, region in cases.aggregate(report).items()}


class Ranges(unittest.TestCase):
    def test_cpp_without_nvtx_headers(self):
        self.assertEqual(cases.run([f"{BIN}/ranges_program_bare"]).stdout, "2 1\n")
        self.test_cpp("ranges_program_bare")

    def test_cpp(self, program="ranges_program"):
        report, done = cases.profile(BIN, [f"{BIN}/{program}"])
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

    def python(self, *before, **environment):
        environment = dict(os.environ, PYTHONPATH=f"{ROOT}/python", PYTHONDONTWRITEBYTECODE="1", **environment)
        done = cases.run([*before, sys.executable, f"{HERE}/program.py"], env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:2], ["passes through", "0 forward Calls itself."])
        return done.stdout.splitlines()[2:4]

    def test_python_without_a_package(self):
        with tempfile.TemporaryDirectory() as folder:
            said = self.python(f"{BIN}/rangescope", "profile", "-q", f"run.dir={folder}/run", "--")
            self.assertEqual(said, ["rangescope", "None"])
            shown = cases.run([f"{BIN}/rangescope", "report", f"{folder}/run", "-f", "json"])
            bucketed = cases.run([f"{BIN}/rangescope", "report", f"{folder}/run", "--bucket-by", "payload", "-f", "json"])
        found = counts(json.loads(shown.stdout))
        self.assertEqual(found[("LLM", "push_pop", ("step",))], 2)
        self.assertEqual(found[("", "push_pop", ("forward",))], 2)
        self.assertEqual(found[("", "push_pop", ("forward", "forward"))], 1)
        self.assertEqual(found[("", "push_pop", ("fails",))], 1)
        found = counts(json.loads(bucketed.stdout))
        self.assertEqual([found[("LLM", "push_pop", (f"step [{n}]",))] for n in (3, -2)], [1, 1])

    def test_coroutines_take_turns(self):
        """Each has its own time, though its thread is in the others meanwhile; a decorated coroutine lasts until it returns."""
        program = """import asyncio, rangescope, time
@rangescope.range("decorated")
async def decorated(seconds):
    await asyncio.sleep(seconds)
async def request(name, seconds):
    begin = time.monotonic()
    with rangescope.range(name, start_end=True, domain="LIB" if name == "long" else None):
        await decorated(seconds)
    print(name, time.monotonic() - begin)
async def main():
    await asyncio.gather(request("short", 0.05), request("long", 0.2), request("middle", 0.1))
asyncio.run(main())"""
        report, done = cases.profile(BIN, ["env", f"PYTHONPATH={ROOT}/python", sys.executable, "-c", program])
        found = cases.aggregate(report)
        for line in done.stdout.splitlines():
            if line.startswith(("short ", "long ", "middle ")):
                name, seconds = line.split()
                region = found.pop(("LIB" if name == "long" else "", "start_end", (name,)))
                self.assertGreaterEqual(region["wall_ns"]["inclusive"] / 1e9, {"short": 0.05, "middle": 0.1, "long": 0.2}[name])
                self.assertLessEqual(region["wall_ns"]["inclusive"] / 1e9, float(seconds), name)
        self.assertEqual({key: region["occurrences"] for key, region in found.items()}, {("", "start_end", ("decorated",)): 3})

    def profiled(self, program):
        return cases.profile(BIN, ["env", f"PYTHONPATH={ROOT}/python", sys.executable, "-c", program])

    def test_a_generator_that_yields_inside(self):
        """The pop of the step ends the range that the generator holds open."""
        program = """import time, rangescope
def batches():
    while True:
        with rangescope.range("load"%s):
            time.sleep(0.002)
            yield 1
batch = batches()
for i in range(20):
    with rangescope.range("step"):
        next(batch)
        time.sleep(0.005)"""
        report, done = self.profiled(program % "")
        self.assertEqual(done.stderr.count("the range 'step' ends while 'load', which began later, is open"), 1, done.stderr)
        self.assertEqual([loss["count"] for loss in report["losses"] if loss["kind"] == "crossing_ranges"], [20], report["losses"])
        self.assertEqual([loss for loss in report["losses"] if loss["kind"] == "unbalanced_ranges"], [])
        report, done = self.profiled(program % ", start_end=True")
        self.assertNotIn("which began later", done.stderr)
        step = cases.aggregate(report)[("", "push_pop", ("step",))]
        self.assertEqual(step["occurrences"], 20)
        self.assertGreaterEqual(step["wall_ns"]["min"], 7e6)
        self.assertEqual([loss for loss in report["losses"] if loss["kind"] == "crossing_ranges"], [])

    def test_coroutines_of_other_libraries(self):
        program = """import asyncio
from rangescope.ranges import _nvtx
async def request(name, seconds):
    for i in range(5):
        _nvtx.push(name)
        await asyncio.sleep(seconds)
        _nvtx.pop()
async def main():
    await asyncio.gather(request(b"fast", 0.02), request(b"slow", 0.11))
asyncio.run(main())"""
        report, _ = self.profiled(program)
        [loss] = [loss for loss in report["losses"] if loss["kind"] == "crossing_ranges"]
        self.assertIn("'fast' and 'slow' of one thread cross", loss["detail"])

    def test_cpp_ranges_that_cross(self):
        _, done = cases.profile(BIN, [f"{BIN}/ranges_program", "cross"])
        self.assertEqual(done.stderr.count("a rangescope::Range ends while another one"), 1, done.stderr)
        _, done = cases.profile(BIN, [f"{BIN}/ranges_program"])
        self.assertNotIn("a rangescope::Range ends while another one", done.stderr)

    def test_lost_pops(self):
        program = """import time
from rangescope.ranges import _nvtx
_nvtx.push(b"train")
for i in range(1000):
    _nvtx.push(b"step")
    time.sleep(0.0001)
    if i in LOST:
        continue
    _nvtx.pop()
_nvtx.pop()
_nvtx.push(b"end")
_nvtx.pop()"""
        for lost in ((166, 500, 833), (0,), (500,), ()):
            report, _ = self.profiled(f"LOST = {lost}\n{program}")
            self.assertEqual(counts(report), {("", "push_pop", ("train",)): 1, ("", "push_pop", ("train", "step")): 1000,
                                              ("", "push_pop", ("end",)): 1}, lost)
            found = [loss for loss in report["losses"] if loss["kind"] == "unbalanced_ranges"]
            self.assertEqual([loss["count"] for loss in found], [len(lost)] if lost else [])
            self.assertEqual([region["unclosed"] for region in report["regions"]], [0] * len(report["regions"]))
            if not lost:
                continue
            self.assertIn(f"'step' was popped {len(lost)} time", found[0]["detail"])
            self.assertIn(f"instance {lost[0] + 1} in 'train'", found[0]["detail"])

    def test_a_recursion_that_never_ends_is_none(self):
        program = """import os
from rangescope.ranges import _nvtx
def walk(depth):
    _nvtx.push(b"walk")
    for i in range(2 if depth else 0):
        walk(depth - 1)
    _nvtx.pop()
walk(4)
_nvtx.push(b"main")
_nvtx.push(b"walk")
walk(3)
walk(3)
os._exit(0)"""
        report, _ = self.profiled(program)
        self.assertEqual([loss for loss in report["losses"] if loss["kind"] in ("unbalanced_ranges", "crossing_ranges")], [])
        self.assertEqual(counts(report)[("", "push_pop", ("main", "walk", "walk"))], 2)

    def test_python_without_a_profiler(self):
        os.environ.pop("NVTX_INJECTION64_PATH", None)
        self.assertEqual(self.python(), ["none", "None"])

    def test_python_says_why_nothing_is_recorded(self):
        backend, failure = self.python(NVTX_INJECTION64_PATH="/no/such/library.so")
        self.assertEqual(backend, "none")
        self.assertIn("/no/such/library.so: ", failure)


cases.main()
