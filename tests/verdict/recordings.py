"""The verdict on every recording of tests/golden: there is one, savings descend, notes claim none, sentences are short, and a
share of a category never stands beside the name of one function.

Usage: recordings.py BIN_DIR SOURCE_DIR
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
import json

BIN, SOURCE = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import cases  # noqa: E402

GOLDEN = os.path.join(SOURCE, "tests", "golden")
FILES = (".sqlite", ".csv", ".rstrace", ".ncu-repz", ".ncu-rep", ".json.gz")
# Open no range, or are tables of what is not timed: `report` says so and ends with 65 or 80.
WITHOUT = (65, 80)


def recordings(scratch):
    for folder, folders, files in os.walk(GOLDEN):
        captured = any(name.endswith((".gpu", ".rstrace")) for name in files)
        if os.path.dirname(folder) == os.path.join(GOLDEN, "native-gpu") or (captured and folder != os.path.join(GOLDEN, "native")):
            yield folder
            folders.clear()
            continue
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name.endswith(FILES):
                yield path
            elif name.endswith((".csv.zst", ".sqlite.zst")) and shutil.which("zstd"):
                out = os.path.join(scratch, os.path.relpath(path, GOLDEN).replace(os.sep, "_")[:-len(".zst")])
                subprocess.run(["zstd", "-qdf", path, "-o", out], check=True)
                yield out


class Recordings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.verdicts, cls.runs_ns = {}, {}
        with tempfile.TemporaryDirectory() as scratch:
            for path in recordings(scratch):
                done = cases.run([os.path.join(BIN, "rangescope"), "report", path, "-f", "json"])
                if done.returncode == 0:
                    report, name = json.loads(done.stdout), os.path.relpath(path, GOLDEN)
                    cls.verdicts[name] = report["verdict"]
                    cls.runs_ns[name] = report["run"]["duration_ns"]
                elif done.returncode not in WITHOUT:
                    raise AssertionError(f"{path}: {done.returncode}\n{done.stderr}")

    def every(self):
        for path, verdicts in self.verdicts.items():
            for one in verdicts:
                yield path, one

    def test_each_has_a_first_line(self):
        self.assertGreater(len(self.verdicts), 40)
        self.assertEqual([path for path, verdicts in self.verdicts.items() if not verdicts], [])

    def test_savings_descend_and_notes_claim_none(self):
        order = ["error", "warning", "note"]
        for path, verdicts in self.verdicts.items():
            with self.subTest(path):
                savings = [one["saves_ns"] for one in verdicts if one["saves_ns"] is not None]
                self.assertEqual(savings, sorted(savings, reverse=True))
                ranks = [order.index(one["severity"]) for one in verdicts]
                self.assertEqual(ranks, sorted(ranks))
                for one in verdicts:
                    if one["severity"] != "warning":
                        self.assertIsNone(one["saves_ns"], one["text"])

    def test_savings_together_do_not_exceed_the_run(self):
        for path, verdicts in self.verdicts.items():
            with self.subTest(path):
                together = sum(one["saves_ns"] or 0 for one in verdicts)
                if self.runs_ns[path]:
                    self.assertLessEqual(together, self.runs_ns[path])

    def test_cures_are_first_and_have_an_interval(self):
        cured = [(path, verdicts) for path, verdicts in self.verdicts.items() if any(one["cure"] for one in verdicts)]
        self.assertGreater(len(cured), 25)
        for path, verdicts in cured:
            with self.subTest(path):
                warnings = [one for one in verdicts if one["severity"] != "error"]
                has_cure = [one["cure"] is not None for one in warnings]
                self.assertEqual(has_cure, sorted(has_cure, reverse=True))
                for one in warnings:
                    if one["cure"]:
                        self.assertLessEqual(one["saves_low_ns"], one["saves_ns"])
                        self.assertGreaterEqual(one["saves_high_ns"], one["saves_ns"])
                        self.assertGreaterEqual(one["after"]["before_ns"], one["after"]["after_ns"])

    def test_sentences_are_short(self):
        lengths = [len(one["text"]) for _, one in self.every()]
        longest = max((len(one["text"]), path, one["text"]) for path, one in self.every())
        self.assertLessEqual(statistics.mean(lengths), 110)
        self.assertLessEqual(longest[0], 240, longest)

    def test_no_share_of_a_category_beside_a_function(self):
        for path, one in self.every():
            with self.subTest(path):
                self.assertNotRegex(one["text"], r"% of its time is \S+ in |% \S+ in \S+\(")
                named = re.search(r"hottest function (.*)", one["text"])
                if named:
                    self.assertRegex(named.group(1), r", (<?\d[\d.]* %)$")

    def test_what_can_be_saved_says_what_to_try(self):
        without = [(path, one["kind"]) for path, one in self.every()
                   if one["saves_ns"] is not None and not one["advice"] and one["kind"] != "dominant_kernel"]
        self.assertEqual(without, [])


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
