#!/usr/bin/env python3
"""Time limits, Ctrl-C, SIGTERM, Ctrl-Z and fg around native, nsys and ncu: the whole group ends or stops, the run directory is whole.

Usage: signals.py BIN_DIR. nsys and ncu are the stand-ins of this folder, which start the program as the real ones do; the real
nsys is ended too where it is there ($RANGESCOPE_TOOLS).
"""
import glob
import json
import os
import signal
import subprocess
import unittest

from pipeline_case import BIN, HERE, PipelineCase, cases
from terminal import PATIENCE_S, Terminal, name_of, soon, state

TOOLS = os.path.join(os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools")), "bin")
LLM = os.path.join(BIN, "llm")
STAGES = {"native": ["run.retries=1"], "nsys": ["--nsys", "--no-native"], "ncu": ["--ncu", "--no-native", "--no-probe", "--replay-mode", "kernel"]}


class Signals(PipelineCase):
    tools = {"RANGESCOPE_NCU": os.path.join(HERE, "ncu"), "RANGESCOPE_NSYS": os.path.join(HERE, "nsys")}

    def program(self, then):
        """A program with a child in a session of its own, then something else. Their pids come into files."""
        return ["sh", "-c", f"setsid sh -c 'echo $$ >child.pid; exec sleep 6000' & echo $$ >program.pid; {then}"]

    long = f"exec {LLM} --layers 2 --tokens 64 --requests 100000"

    def environment(self, **more):
        plan = os.path.join(self.folder, "plan.json")
        with open(plan, "w") as f:
            json.dump({"kernel": "k_nested"}, f)
        return super().environment(STANDIN_PLAN=plan, TMPDIR=self.folder, **more)

    def argv(self, stage, program, *words):
        return [os.path.join(BIN, "rangescope"), "profile", "--no-project", *STAGES[stage], *words, "--", *program]

    def pid(self, name):
        path = os.path.join(self.folder, name + ".pid")
        self.assertTrue(soon(lambda: os.path.exists(path) and os.path.getsize(path) > 0), f"{name} did not start")
        with open(path) as f:
            return int(f.read())

    def whole(self, stage, outcomes, code=None):
        """The run directory of the last run is finished, whoever ended it, and nothing of the run is alive."""
        self.last_run()
        status = self.json("status.json")
        self.assertIn(status["outcome"], outcomes)
        if code is not None:
            self.assertEqual(status["exit_code"], code)
        self.assertTrue(self.json("manifest.json")["files"])
        verified = cases.run([os.path.join(BIN, "rangescope"), "runs", "verify", self.run_dir], cwd=self.folder)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        for name in ("program", "child"):
            pid = self.pid(name)
            self.assertTrue(soon(lambda: state(pid) == ""), f"the {name} of stage {stage} still runs: {state(pid)}")
        if stage == "native":
            self.assertIn("decode", [r["path"][0] for r in self.json("report.json")["regions"]])  # what was captured is reported

    def begun(self, stage):
        """The program works, however slow the machine is: under our own collector its capture names a range."""
        self.pid("child")
        program = self.pid("program")
        self.assertTrue(soon(lambda: name_of(program) == "llm"), "the program did not begin")
        captures = os.path.join(self.folder, "rangescope-runs", "*", "native", "*.rstrace")

        def decodes(path):
            with open(path, "rb") as f:
                return b"decode" in f.read(1 << 20)
        if stage == "native":
            self.assertTrue(soon(lambda: any(decodes(path) for path in glob.glob(captures))), "no range was recorded")

    def recorded(self, stage):
        """The program of the last run started, and came to what our own collector's capture must hold."""
        if not os.path.exists(os.path.join(self.folder, "child.pid")):
            return False
        self.last_run()
        return stage != "native" or "decode" in [r["path"][0] for r in self.json("report.json")["regions"]]

    def last_run(self):
        root = os.path.join(self.folder, "rangescope-runs")
        self.run_dir = max((os.path.join(root, name) for name in os.listdir(root)), key=os.path.getmtime)

    def again(self):
        for name in ("program.pid", "child.pid", "decoded"):
            if os.path.exists(os.path.join(self.folder, name)):
                os.remove(os.path.join(self.folder, name))

    def test_time_limit(self):
        for stage in STAGES:
            with self.subTest(stage):
                for limit in ("1s", "10s", "100s"):  # a tool that has not started the program yet, on a busy machine, gets longer
                    self.again()
                    done = cases.run(self.argv(stage, self.program(self.long), f"run.timeout={limit}"), cwd=self.folder, env=self.environment())
                    self.assertNotEqual(done.returncode, 0)
                    if self.recorded(stage):
                        break
                self.whole(stage, ("timed_out",) if stage == "native" else ("nothing_captured", "ok"))

    def test_sigterm(self):
        for stage in STAGES:
            with self.subTest(stage):
                self.again()
                running = subprocess.Popen(self.argv(stage, self.program(self.long)), cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.begun(stage)
                running.terminate()
                self.assertIn(running.wait(PATIENCE_S), (128 + signal.SIGTERM, -signal.SIGTERM))
                self.whole(stage, ("interrupted", "program_failed"), 128 + signal.SIGTERM)

    def test_ctrl_c(self):
        for stage in STAGES:
            with self.subTest(stage):
                self.again()
                terminal = Terminal(self.argv(stage, self.program(self.long)), self.folder, self.environment())
                self.begun(stage)
                terminal.press(b"\x03")
                self.assertIn(terminal.wait_for("ended"), (f"ended {128 + signal.SIGINT}", f"ended {-signal.SIGINT}"))
                terminal.close()
                self.whole(stage, ("interrupted", "program_failed"), 128 + signal.SIGINT)

    def test_ctrl_z_and_fg(self):
        short = f"read line; echo got $line; {LLM} --layers 1 --tokens 2 --requests 1 >/dev/null"
        for stage, words in (("native", []), ("native", ["run.timeout=600s"]), ("nsys", []), ("ncu", [])):
            with self.subTest(stage=stage, words=words):
                self.again()
                program = ["sh", "-c", "echo $$ >program.pid; " + short]
                terminal = Terminal(self.argv(stage, program, *words), self.folder, self.environment())
                pid = self.pid("program")
                self.assertTrue(soon(lambda: state(pid) == "S"), "the program does not read the terminal")
                terminal.press(b"\x1a")
                terminal.wait_for("stopped")
                self.assertTrue(soon(lambda: state(pid) == "T"), f"the program goes on: {state(pid)}")
                terminal.fg()
                terminal.press(b"hello\n")  # the program has the terminal again: it may read it
                self.assertEqual(terminal.wait_for("ended"), "ended 0", terminal.shown.decode(errors="replace"))
                self.assertIn(b"got hello", terminal.shown)
                terminal.close()

    @unittest.skipUnless(os.path.exists(os.path.join(TOOLS, "nsys")), "the real tools are not here (tests/tools/fetch.sh)")
    def test_the_real_nsys(self):
        for how in ("timeout", "sigterm"):
            with self.subTest(how):
                # nsys 2022 does not always survive the end: a signal while it starts ends itself (its own waiter finds no
                # semaphore), and the stream that it leaves is at times one that its own importer refuses. It is started
                # again then; what we make of such a run is held against what it must be each time.
                for limit in ("8s", "20s", "60s", "60s", "60s", "60s"):
                    report, said = self.ended(how, limit)
                    if report["regions"]:
                        break
                    losses = [loss["kind"] for loss in report["losses"]]
                    self.assertTrue("ProcessWaiter" in said or "stage_failed" in losses or not self.has_decoded(), said)
                else:
                    self.skipTest(f"nsys left no report in six runs: {said}")
                # what nsys had recorded until then is reported, and that the rest is missing
                self.assertIn("decode", [r["path"][0] for r in report["regions"]], (report["losses"], said))
                if how == "timeout":
                    self.assertIn("timed_out", [loss["kind"] for loss in report["losses"]])

    def has_decoded(self):
        return os.path.exists(os.path.join(self.folder, "decoded"))

    def ended(self, how, limit):
        """The report of a run of the real nsys that was ended, and what nsys said."""
        self.again()
        words = [f"run.timeout={limit}"] if how == "timeout" else []
        # under nsys from the begin: when the first of the two has ended, there is something recorded
        program = self.program(f"{LLM} --layers 1 --tokens 2 --requests 1 >/dev/null; echo >decoded; {self.long}")
        running = subprocess.Popen(self.argv("nsys", program, "pipeline.nsys.trace=[nvtx]", *words), cwd=self.folder,
                                   env=self.environment(RANGESCOPE_NSYS=os.path.join(TOOLS, "nsys")), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if how == "sigterm":
            self.assertTrue(soon(self.has_decoded), "the program did not begin")
            running.terminate()
        error = running.communicate(timeout=PATIENCE_S)[1]
        self.last_run()
        code, outcome = 128 + signal.SIGTERM, "interrupted"
        if how == "timeout":
            code, outcome = (0, "ok") if self.json("report.json")["regions"] else (80, "nothing_captured")
        self.assertEqual(running.returncode, code, error)
        if os.path.exists(os.path.join(self.folder, "child.pid")):  # else the limit ended nsys before the program began
            self.whole("nsys", (outcome,))
        with open(os.path.join(self.run_dir, "nsys", "profile.stderr"), errors="replace") as f:
            return self.json("report.json"), f.read()


if __name__ == "__main__":
    cases.main()
