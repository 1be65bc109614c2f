#!/usr/bin/env python3
"""The first rung of the ladder, native counters, with the stand-in CUPTI (tests/cupti) and the stand-in ncu behind it.

Usage: native_rung.py BIN_DIR LIBCUPTI
"""
import os
import sys

from pipeline_case import BIN, HERE, PipelineCase, cases

CUPTI, VICTIM = sys.argv[2], os.path.join(BIN, "standin_victim")
CLI = "pipeline.ncu.ncu_cli."
ASKED = ["--chip", "GH100", "--skip-first", "0", "--rounds", "1", "--ncu", CLI + "metrics=[dram__bytes.sum,sm__inst_executed.sum]"]


class NativeRung(PipelineCase):
    tools = {"RANGESCOPE_NCU": os.path.join(HERE, "ncu"), "RANGESCOPE_CUPTI": CUPTI, "STANDIN_PASSES": "2"}

    def decode(self):
        return [r for r in self.json("report.json")["regions"] if r["path"] == ["decode"] and r["process"] is None][0]

    def test_enough_occurrences_need_no_ncu(self):
        done = self.profile(*ASKED, CLI + "nvtx.include=decode", program=[VICTIM, "decode", "60"], plan={})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.steps(), [("native", "ok", "")])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "plan.json.calls")), "ncu was started")
        self.assertEqual(self.decode()["metrics"]["dram__bytes.sum"]["value"], 17000)
        self.assertEqual(self.decode()["metrics"]["sm__inst_executed.sum"]["value"], 200)
        self.assertIn("2 metrics in 2 passes on GH100", done.stderr)

    def test_too_few_go_on_to_ncu(self):
        done = self.profile(*ASKED, CLI + "nvtx.include=decode", program=[VICTIM, "decode", "1"], plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([s[:2] for s in self.steps()], [("native", "refused"), ("range (one instance)", "ok"), ("range", "ok")])
        self.assertIn("the range has one instance", self.stages[1]["message"])

    def test_ranges_without_a_complete_set_go_on_alone(self):
        done = self.profile(*ASKED, CLI + "nvtx.include=[decode/,nosuch/]", program=[VICTIM, "decode", "60"], plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.steps()[0], ("native", "ok", "native.incomplete"))
        self.assertIn("none of nosuch/", self.stages[1]["message"])
        for call in self.calls():  # what has its numbers is not measured again
            self.assertEqual([call[i + 1] for i, w in enumerate(call) if w == "--nvtx-include"], ["nosuch/"])
        self.assertEqual(self.decode()["metrics"]["sm__inst_executed.sum"]["value"], 200)

    def test_a_program_that_dies_while_it_is_counted_runs_again(self):
        program = ["sh", "-c", '[ -z "$RANGESCOPE_COUNTERS" ] || kill -SEGV $$; exec "$0" decode 60', VICTIM]
        done = self.profile(*ASKED, CLI + "nvtx.include=decode", program=program, plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([s["stage"] for s in self.stages], ["native", "native", "ncu", "ncu", "ncu"])
        self.assertEqual([s[:2] for s in self.steps()], [("native", "refused"), ("range (one instance)", "ok"), ("range", "ok")])
        self.assertIn("ended by SIGSEGV (11) while native counters were collected", self.stages[2]["message"])
        self.assertIn("counters_failed", [loss["kind"] for loss in self.json("report.json")["losses"]])
        self.assertEqual(self.decode()["occurrences"], 60)


if __name__ == "__main__":
    cases.main()
