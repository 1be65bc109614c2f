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

    def test_python_without_a_profiler(self):
        os.environ.pop("NVTX_INJECTION64_PATH", None)
        self.assertEqual(self.python(), ["none", "None"])

    def test_python_says_why_nothing_is_recorded(self):
        backend, failure = self.python(NVTX_INJECTION64_PATH="/no/such/library.so")
        self.assertEqual(backend, "none")
        self.assertIn("/no/such/library.so: ", failure)


cases.main()
