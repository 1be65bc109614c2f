#!/usr/bin/env python3
"""cli.messages: every option that a message of ours names exists, where it names it. Usage: messages.py BIN_DIR ROOT

Looks at the string literals of src/: what follows `rangescope COMMAND` must be in that command's help, another `--word` in the help of
some command, or in that of nsys or ncu (tests/golden/help). Code about other tools' command lines is left out."""
import glob
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases

BIN, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
OTHERS = ("/inject/mpi/", "/collect/", "/doctor/command/", "/config/keys.tsv", "/runs/provenance.cpp")
FOREIGN = {"--cap-add", "--exclude", "--zstd", "--pause", "--print-gpu-trace", "--profile-child-processes", "--type", "--report", "--timeunit",
           "--user", "--proxy-user", "--runtime-trace", "--output-format", "--hip-trace", "--roctx-trace"}  # of docker, tar, dcgmi, nvprof, nsys export and stats, curl, rocprof
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def help_of(*words):
    done = [subprocess.run([f"{BIN}/rangescope", *words, option], capture_output=True, text=True, timeout=600) for option in ("--help", "--help-all")]
    return "".join(one.stdout for one in done if one.returncode == 0)


def literals():
    """(file, text) of each string, neighbours joined."""
    for path in sorted(glob.glob(f"{ROOT}/src/**/*.[ch]pp", recursive=True)):
        if path.endswith("_test.cpp") or any(other in path for other in OTHERS):
            continue
        with open(path, encoding="utf-8") as f:
            source = re.sub(r"^\s*//.*$", "", f.read(), flags=re.M)
        for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", source)):
            yield os.path.relpath(path, ROOT), text
    for path in sorted(glob.glob(f"{ROOT}/src/**/*.tsv", recursive=True)):
        if not any(other in path for other in OTHERS):
            with open(path, encoding="utf-8") as f:
                skipped = 0
                if path.endswith("/base/removed.tsv"):
                    skipped = 1  # what no longer exists
                elif path.endswith(("/cli/app.tsv", "/cli/peers.tsv")):
                    skipped = 2  # the kind of a row, and a word of another tool or an earlier version
                yield from ((os.path.relpath(path, ROOT), cell) for line in f if not line.startswith("//") for cell in line.rstrip().split("\t")[skipped:])


class Messages(unittest.TestCase):
    maxDiff = None
    @classmethod
    def setUpClass(cls):
        cls.options = {}
        for command in re.findall(r"^  ([a-z]+) ", subprocess.run([f"{BIN}/rangescope", "help"], check=True, capture_output=True, text=True).stdout, re.M):
            text = help_of(command)
            for word in re.findall(r"^  ([a-z]+) ", text, re.M):
                text += help_of(command, word)
            cls.options[command] = set(OPTION.findall(text)) | {"--help"}
        cls.tools = set()
        for path in glob.glob(f"{ROOT}/tests/golden/help/*.txt"):
            with open(path, encoding="utf-8") as f:
                cls.tools |= set(OPTION.findall(f.read()))

    def test_a_value_of_any_length_is_quoted_in_one_screen(self):
        value = "x" * 100_000
        for words in (["--rounds", value], [f"cpu={value}"]):
            done = subprocess.run([f"{BIN}/rangescope", "profile", "--no-project", *words, "--", "true"], capture_output=True, text=True, timeout=600)
            self.assertIn(done.returncode, (64, 78))
            self.assertIn("xxx…xxx", done.stderr)
            self.assertLess(len(done.stderr), 10_000)

    def test_what_was_removed_names_what_to_write_instead(self):
        for words, code, hint in ((["profile", "--overhead", "1%", "--", "true"], 64, "--overhead was removed: write --after "),
                                  (["profile", "--no-project", "--overhead=1%", "true"], 64, "--overhead was removed: write --after "),
                                  (["profile", "--no-project", "pipeline.native.overhead=1%", "--", "true"], 78, "pipeline.native.overhead was removed: write --after "),
                                  (["runs", "pack", "latest", "-o", "x.tar.zst"], 64, "runs pack was removed: write tar --zstd -cf "),
                                  (["runs", "unpack", "x.tar.zst"], 64, "runs unpack was removed: write tar --zstd -xf "),
                                  (["report", "-f", "otlp", "x"], 64, "-f otlp was removed: write -f pprof "),
                                  (["report", "-o", "x.trace.json", "x"], 64, "-o FILE.trace.json was removed: write -f perfetto"),
                                  (["report", "-o", "run.spans.otlp", "x"], 64, "-o FILE.otlp was removed: write -f pprof ")):
            done = subprocess.run([f"{BIN}/rangescope", *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(f"hint: {hint}", done.stderr)

    def test_the_commands_are_found(self):
        self.assertGreater(len(self.options), 11)
        self.assertIn("--from", self.options["runs"])
        self.assertGreater(len(self.tools), 100)

    def test_options_exist(self):
        ours = {"--root", "--version", "--no", "--pid"}  # an older spelling, of rangescope itself, the first word of --no-...
        known = set().union(*self.options.values(), self.tools, FOREIGN, ours)
        self.assertEqual([(path, option, text) for path, text in literals() for option in OPTION.findall(text) if option not in known], [])

    def test_commands_have_the_options_they_are_named_with(self):
        wrong, seen = [], 0
        for path, text in literals():
            for command, words in re.findall(r"rangescope ([a-z]+)((?:(?! rangescope )[^;])*)", text):
                if command not in self.options:
                    continue
                for option in OPTION.findall(words.split(" -- ")[0]):
                    seen += 1
                    if option not in self.options[command]:
                        wrong.append((path, command, option, text))
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 20)


if __name__ == "__main__":
    cases.main()
