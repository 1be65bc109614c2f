#!/usr/bin/env python3
"""The JSON report against docs/formats/report.schema.json: golden reports, and one of a real run.
Usage: schema.py BIN_DIR SOURCE_DIR"""
import copy
import glob
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

BIN, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class Schema(unittest.TestCase):
    schema = load(f"{SOURCE}/docs/formats/report.schema.json")

    def test_golden_reports(self):
        paths = glob.glob(f"{SOURCE}/tests/golden/report/*.json")
        self.assertGreaterEqual(len(paths), 2)
        for path in paths:
            self.assertEqual(json_schema.errors(load(path), self.schema), [], path)

    def test_a_real_run(self):
        report, done = cases.profile(BIN, [f"{BIN}/cli_victim", "children"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json_schema.errors(report, self.schema), [])
        self.assertGreater(len(report["regions"]), 2)

    def test_a_range_that_never_ended(self):
        report, _ = cases.profile(BIN, [f"{BIN}/cli_victim", "open"])
        self.assertEqual(json_schema.errors(report, self.schema), [])
        self.assertIn(None, [r["wall_ns"]["median"] for r in report["regions"]])

    def test_every_measure_is_in_the_schema_and_described(self):
        report = load(f"{SOURCE}/tests/golden/report/gpu.json")
        defs = self.schema["$defs"]
        for tag in report["measures"]:
            at = defs["region"]
            for part in tag.split("."):
                at = at["properties"][part]
                if "anyOf" in at:
                    at = at["anyOf"][0]
                if "$ref" in at:
                    at = defs[at["$ref"].split("/")[-1]]

    def test_the_validator_sees_what_is_wrong(self):
        good = load(f"{SOURCE}/tests/golden/report/gpu.json")
        for change in (lambda r: r.pop("losses"), lambda r: r["regions"][0].pop("path"),
                       lambda r: r["regions"][0].update(kind="other"), lambda r: r["regions"][0]["wall_ns"].update(min="1"),
                       lambda r: r["regions"][0].update(surprise=1), lambda r: r.update(schema="rangescope.report/2")):
            bad = copy.deepcopy(good)
            change(bad)
            self.assertNotEqual(json_schema.errors(bad, self.schema), [])


if __name__ == "__main__":
    cases.main()
