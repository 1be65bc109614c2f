#!/usr/bin/env python3
"""Every pair of options of `profile` that choose stages, with stand-ins of nsys, ncu and CUPTI: either the run leaves the files
of its stages, exit code 0 and status ok, and started the program as often as its stages say, or it is refused with the reason
before anything runs.

Usage: pairs.py BIN_DIR LIBCUPTI
"""
import itertools
import os
import sys
import unittest

from pipeline_case import BIN, HERE, PipelineCase, cases

CUPTI, VICTIM = sys.argv[2], os.path.join(BIN, "standin_victim")
OPTIONS = {
    "keep": ["--keep", "3"],
    "repeat": ["--repeat", "2"],
    "relaunch": ["--passes", "relaunch"],
    "warmup": ["--warmup", "1"],
    "dir": ["--run-dir", "rangescope-runs/mine"],
    "nsys": ["--nsys"],
    "ncu": ["--ncu", "--replay-mode", "kernel"],
    "no-native": ["--no-native"],
    "metrics": ["--metrics", "dram__bytes.sum,sm__inst_executed.sum", "--chip", "GH100", "--skip-first", "0", "--rounds", "1", "--include", "decode"],
    "per": ["--per", "kernel"],
    "timeout": ["--timeout", "1000s"],
    "light": ["--light"],
}
ALWAYS = {"cmd.txt", "config.yaml", "env.json", "inputs.yaml", "kernels.md", "manifest.json", "report.json", "report.md",
          "stages.json", "status.json", "summary.md", "summary.svg"}
COUNTED = {"counters.plan", "counters.json"}
OFF = "every stage is disabled"


def expected(chosen):
    """(entries of the run directory, stages that are recorded, starts of the program), or the words of the refusal."""
    native = "no-native" not in chosen
    if not native and not chosen & {"nsys", "ncu"}:
        return OFF
    if "light" in chosen and not native:
        return "--light needs the native stage"
    if chosen >= {"light", "metrics"}:
        return "--light keeps CUPTI out"
    entries, stages, starts = set(ALWAYS), [], 0
    if "warmup" in chosen:
        entries, starts = entries | {"warmup"}, 1
    if native and "repeat" in chosen:
        entries, stages, starts = entries | {"repeats"}, ["native"], starts + 2
    elif native:
        entries, stages, starts = entries | {"native"}, ["native"], starts + 1
        if "metrics" in chosen and "ncu" not in chosen:
            entries |= COUNTED
    elif "repeat" in chosen:
        return "--repeat repeats the native stage, which is off"
    for tool in ("nsys", "ncu"):
        if tool in chosen:
            entries, stages, starts = entries | {tool}, stages + [tool], starts + 1
    return entries, stages, starts


class Pairs(PipelineCase):
    tools = {"RANGESCOPE_NCU": os.path.join(HERE, "ncu"), "RANGESCOPE_NSYS": os.path.join(HERE, "nsys"),
             "RANGESCOPE_CUPTI": CUPTI, "STANDIN_PASSES": "2"}

    def starts(self):
        path = os.path.join(self.folder, "starts")
        with open(path) as f:
            count = len(f.readlines())
        os.remove(path)
        return count

    def check(self, names):
        chosen = set(names)
        words = [word for name in names for word in OPTIONS[name]]
        program = ["sh", "-c", 'echo >>starts; echo its output; exec "$0" decode 60', VICTIM]
        done = self.profile(*words, program=program, plan={"kernel": "k_decode"})
        wanted = expected(chosen)
        if isinstance(wanted, str):
            self.assertIn(done.returncode, (64, 78), done.stderr)
            self.assertIn(wanted, done.stderr)
            self.assertIsNone(self.run_dir)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "starts")))
            return
        entries, stages, starts = wanted
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(os.listdir(self.run_dir)), entries)
        self.assertEqual([stage["stage"] for stage in self.stages], stages)
        status = self.json("status.json")
        self.assertEqual((status["state"], status["outcome"], status["exit_code"]), ("done", "ok", 0))
        self.assertEqual(self.starts(), starts)
        repeats = os.path.join(self.run_dir, "repeats")
        for name in os.listdir(repeats) if os.path.isdir(repeats) else []:
            inside = set(os.listdir(os.path.join(repeats, name)))
            self.assertEqual(inside, ALWAYS | {"native"} | (COUNTED if "metrics" in chosen and "ncu" not in chosen else set()))
        self.assertEqual(done.stdout.count("its output\n"), 2 if "repeat" in chosen and "no-native" not in chosen else 1)
        regions = [r for r in self.json("report.json")["regions"] if r["path"] == ["decode"] and r["process"] is None]
        self.assertTrue(regions)
        if "metrics" in chosen and "ncu" not in chosen and "per" not in chosen:
            self.assertEqual(regions[0]["metrics"]["sm__inst_executed.sum"]["value"], 200)
        verified = cases.run([os.path.join(BIN, "rangescope"), "runs", "verify", self.run_dir], cwd=self.folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)


def case(names):
    return lambda self: self.check(names)


for pair in itertools.combinations(OPTIONS, 2):
    setattr(Pairs, "test_" + "_and_".join(pair).replace("-", "_"), case(pair))
for alone in OPTIONS:
    setattr(Pairs, "test_" + alone.replace("-", "_"), case((alone,)))
setattr(Pairs, "test_all_that_go_together", case(tuple(name for name in OPTIONS if name not in ("no-native", "ncu", "light"))))

if __name__ == "__main__":
    cases.main()
