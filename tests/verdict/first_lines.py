"""The first line of the verdict on each recording of tests/golden, held against what the recorded program does.

Usage: first_lines.py BIN_DIR SOURCE_DIR. first_lines.txt has three lines a recording: its path in tests/golden, what the
program's source does (written by hand), and the line. RANGESCOPE_UPDATE_GOLDEN=1 writes the lines anew; read the diff.
"""
import glob
import json
import os
import sys
import unittest

BIN, SOURCE = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import cases  # noqa: E402

LIST = os.path.join(SOURCE, "tests", "verdict", "first_lines.txt")
GOLDEN = os.path.join(SOURCE, "tests", "golden")


def listed():
    """[recording, what its program does, first line]"""
    with open(LIST, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip()]
    return [lines[i:i + 3] for i in range(0, len(lines), 3)]


def verdict(recording):
    done = cases.run([os.path.join(BIN, "rangescope"), "report", os.path.join(GOLDEN, recording), "-f", "json"])
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["verdict"]


def text(one):
    return (one["path"] + ": " if one["path"] else "") + one["text"]


class FirstLines(unittest.TestCase):
    def test_every_recording_is_listed(self):
        found = set()
        for pattern in ("native-gpu/*/", "nsys/*.sqlite", "ncu/*.ncu-repz", "native/*.rstrace"):
            found.update(os.path.relpath(path, GOLDEN) for path in glob.glob(os.path.join(GOLDEN, pattern)))
        found -= {"native/v1_payloads_0.rstrace"}  # opens no range
        self.assertEqual(found - {recording for recording, _, _ in listed()}, set())

    def test_agrees_with_the_program(self):
        update = os.environ.get("RANGESCOPE_UPDATE_GOLDEN")
        new = []
        for recording, does, line in listed():
            said = verdict(recording)
            self.assertTrue(1 <= len(said) <= 5, recording)
            new.append("\n".join([recording, does, text(said[0])]))
            if not update:
                with self.subTest(recording):
                    self.assertEqual(text(said[0]), line, "the program: " + does)
        if update:
            with open(LIST, "w", encoding="utf-8") as file:
                file.write("\n\n".join(new) + "\n")

    def test_savings_are_of_the_run(self):
        for one in verdict("native-gpu/autograd"):
            if one["saves_ns"] is not None:
                self.assertAlmostEqual(one["saves_share"], one["saves_ns"] / 3546e6, delta=0.001)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
