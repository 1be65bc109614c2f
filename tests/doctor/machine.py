#!/usr/bin/env python3
"""`rangescope doctor` on a machine whose driver is a stand-in for NVML. Usage: machine.py BIN_DIR LIBNVIDIA_ML."""
import json
import os
import tempfile
import time
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import cases  # noqa: E402

BIN, NVML = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def doctor(state, *options, **variables):
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(NVML), STANDIN_NVML=state, **variables)
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    return cases.run([f"{BIN}/rangescope", "doctor", *options], env=environment)


def findings(state, **variables):
    done = doctor(state, "--json", **variables)
    answer = json.loads(done.stdout)
    assert answer["schema"] == "rangescope.doctor/1" and answer["asked"] == "machine", answer
    return {f["id"]: f for f in answer["findings"]}, answer, done.returncode


class Machine(unittest.TestCase):
    def test_what_nvml_says(self):
        found, _, _ = findings("ok")
        if "machine.driver" in found:  # unless this machine has a driver of its own without device files
            self.assertEqual(found["machine.driver"]["found"], "driver 580.159.03, serves programs up to CUDA 13.0")
        self.assertEqual(found["machine.gpus"]["found"], "2 GPUs: NVIDIA H200, NVIDIA H200")
        for well in ("machine.gpus", "machine.mig", "machine.clocks"):
            self.assertEqual(found[well]["verdict"], "ok")
            self.assertTrue(found[well]["question"].endswith("?"))

    def test_mig_and_clocks(self):
        found, answer, _ = findings("busy")
        self.assertEqual(found["machine.mig_on"]["found"], "GPU 0: MIG mode is on")
        self.assertEqual(found["machine.clocks_held"]["found"], "GPU 1: clocks are throttled now by the power cap (1500 of 1980 MHz)")
        self.assertEqual(found["machine.application_clocks"]["found"], "GPU 1: application clock 1200 MHz, by default 1980 MHz")
        self.assertIn(answer["verdict"], ("warn", "fail"))
        for finding in answer["findings"]:
            if finding["verdict"] in ("warn", "fail"):
                self.assertTrue(finding["why"] and finding["hint"], finding)

    def test_driver_mismatch(self):
        found, answer, code = findings("mismatch")
        self.assertEqual(found["machine.driver_mismatch"]["verdict"], "fail")
        self.assertEqual((answer["verdict"], code), ("fail", 69))

    def test_a_run_waits_for_idle_gpus(self):
        def notes(state, limit, **variables):
            with tempfile.TemporaryDirectory() as folder:
                environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(NVML), STANDIN_NVML=state, **variables)
                begin = time.monotonic()
                done = cases.run([f"{BIN}/rangescope", "profile", "--wait-idle", limit, "--run-dir", folder + "/r", "--", "true"], env=environment)
                report = json.load(open(folder + "/r/report.json"))
                self.assertEqual(done.returncode, 0, done.stderr)
                return [n for n in report["notes"] if "--wait-idle" in n], time.monotonic() - begin
        self.assertEqual(notes("ok", "20s")[0], [])
        told, _ = notes("fading", "20s")
        self.assertRegex(told[0], r"^--wait-idle: waited .* for the GPU \(GPU 1 is busy \(37 %\)\)$")
        told, took = notes("working", "1s")
        self.assertRegex(told[0], r"^--wait-idle: GPU 1 is busy \(37 %\) after .*; the program runs anyway$")
        self.assertGreater(took, 1)
        for visible in ("0", "GPU-0000"):  # the busy one is none of the program's
            self.assertEqual(notes("working", "20s", CUDA_VISIBLE_DEVICES=visible)[0], [])
        self.assertTrue(notes("working", "1s", CUDA_VISIBLE_DEVICES="GPU-1000")[0])

    def test_text(self):
        done = doctor("ok", NVTX_INJECTION64_PATH="/opt/other.so")
        self.assertIn("\nok: machine.gpus: 2 GPUs: NVIDIA H200, NVIDIA H200\n", "\n" + done.stdout)
        self.assertIn("warn: machine.injection_set: NVTX_INJECTION64_PATH=/opt/other.so\n  why: ", done.stdout)
        self.assertIn("  try: unset NVTX_INJECTION64_PATH\n", done.stdout)

    def test_catalogue(self):
        done = cases.run([f"{BIN}/rangescope", "doctor", "--causes"])
        with open(os.path.join(HERE, "..", "..", "docs", "manual", "causes.md"), encoding="utf-8") as page:
            self.assertEqual(done.stdout, page.read())


if __name__ == "__main__":
    cases.main()
