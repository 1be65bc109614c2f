#!/usr/bin/env python3
"""The tests that need a GPU. Usage: run.py BUILD OUT [part...]

    BUILD    a build folder with bin/rangescope and lib/librangescope_inject.so
    OUT      a folder for captures; OUT/<GPU>.json gets machine, cases and figures
    part     truth counters pipeline doctor flops cost light clocks modules models windows pc attach attached_ranks shared allocates memory savings: all of them where none is named; truth.Zoo.test_counts is one case
    NVCC= NCU= NSYS= PYTHON=   tools, where PATH does not find them
    BUDGET=  seconds; what would take longer is skipped and counted

The last line counts: `N passed, N failed, N skipped`. Exit code 1 on a failure, or where nothing ran.
"""
import json
import platform
import subprocess
import sys
import unittest

import gpu

PARTS = ("truth", "counters", "pipeline", "doctor", "flops", "cost", "light", "clocks", "modules", "models", "windows", "pc", "attach", "attached_ranks", "shared", "allocates", "memory", "savings")


class Told(unittest.TextTestResult):
    """One line a case as it ends."""

    cases = {}

    def note(self, test, state, why=""):
        name = test.id()
        self.cases[name] = {"result": state, "why": why}
        print(f"{state:7} {name}{': ' + why if why else ''}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "pass")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "FAIL", " ".join(str(err[1]).split())[-600:])

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "FAIL", f"{err[0].__name__}: " + " ".join(str(err[1]).split())[-600:])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skip", reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(subtest, "FAIL", " ".join(str(err[1]).split())[-600:])


def machine():
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        gpus = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip().splitlines()
    except OSError:
        gpus = []
    return {"gpus": gpus, "system": platform.platform(), "ncu": gpu.ncu(), "nsys": gpu.nsys(), "python": gpu.python()}


def main(build, out, *parts):
    gpu.start(build, out)
    about = machine()
    print(json.dumps(about))
    if not about["gpus"]:
        print("no GPU on this machine")
        return 77
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(part) for part in parts or PARTS)
    result = unittest.TextTestRunner(resultclass=Told, stream=open("/dev/null", "w", encoding="utf-8")).run(suite)
    name = about["gpus"][0].split(",")[0].replace(" ", "-")
    with open(f"{gpu.OUT}/{name}.json", "w", encoding="utf-8") as f:
        json.dump({"machine": about, "cases": Told.cases, "figures": gpu.figures}, f, indent=1)
    states = [case["result"] for case in Told.cases.values()]
    print(f"{states.count('pass')} passed, {states.count('FAIL')} failed, {states.count('skip')} skipped")
    return 0 if result.wasSuccessful() and "pass" in states else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(64)
    sys.path.insert(0, gpu.HERE)
    sys.exit(main(*sys.argv[1:]))
