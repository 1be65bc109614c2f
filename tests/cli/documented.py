#!/usr/bin/env python3
"""What the documents and help pages say can be typed: every command and option exists, and pasted output is what comes.

Usage: documented.py BIN_DIR SOURCE_DIR
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import pasted  # noqa: E402

TOOL = os.path.join(os.path.abspath(sys.argv[1]), "rangescope")
SOURCE = os.path.abspath(sys.argv[2])
DOCTORS = {"machine.driver", "machine.gpus", "machine.mig", "command.version"}  # facts, which are no causes


def output(*words):
    return subprocess.run([TOOL, *words], cwd=SOURCE, env={**os.environ, "COLUMNS": "120"}, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=600).stdout


def commands_in(text):
    """Commands of code blocks, of quoted words, and of help pages; without the program that they run or feed."""
    blocks = "\n".join(re.findall(r"(?s)```\w*\n(.*?)```", text))
    quoted = re.findall(r"`(rangescope [^`]+)`", re.sub(r"(?s)```.*?```", "", text))
    lines = (text if text.startswith("help page") else blocks).replace("\\\n", " ").splitlines()
    for line in lines + [one.replace("\n", " ") for one in quoted]:
        found = re.match(r"[ $]*(?:\S+=\S+ |(?:mpirun|srun|torchrun) .*?)*(rangescope [a-z].*)", line)
        if found:
            yield re.split(r" -- | \\?\| | > | 2>|  +|\s#", found.group(1) + " ")[0].strip()


class Documented(unittest.TestCase):
    def setUp(self):
        self.pages = {}

    def page(self, command):
        if command not in self.pages:
            self.pages[command] = (output(command, "--help-all") or output(command, "--help")) if command else output("help")
        return self.pages[command]

    def test_commands(self):
        known = set(re.findall(r"(?m)^  (\w[\w-]*) {2,}", self.page("")))
        texts = {f"help {command}": "help page\n" + self.page(command) for command in known}
        for name in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", *glob.glob("docs/**/*.md", root_dir=SOURCE, recursive=True)]:
            with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
                texts[name] = file.read()
        seen = 0
        for name, text in texts.items():
            for line in commands_in(text):
                with self.subTest(name, line=line):
                    try:
                        words = shlex.split(line)[1:]
                    except ValueError:
                        continue  # prose with an apostrophe
                    self.assertIn(words[0], known | {"help"})
                    if words[0] == "help" or "--explain" in words:
                        continue  # --explain has the options of another tool behind it
                    for word in words[1:]:
                        if word.startswith("./") or word in ("python", "torchrun"):
                            break  # the program and its options
                        option = re.match(r"\[?(--?[a-z][\w-]*)", word)
                        if option:
                            seen += 1
                            self.assertRegex(self.page(words[0]), rf"(?m)^ .*(?<![\w-]){option.group(1)}(?![\w-])")
        self.assertGreater(seen, 100)

    def test_the_first_screen_of_the_readme(self):
        """40 lines of 80 columns: how to get it, a command, what it prints, why, what it costs, eight commands."""
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            screen = file.read().splitlines()[:40]
        self.assertLessEqual(max(map(len, screen)), 80)
        text = "\n".join(screen)
        for needed in ("pip install rangescope-", "git clone https://", "\nsudo apt install ./rangescope_", "\nrangescope profile python3 train.py\n", "$ rangescope report tests/golden/",
                       "saves ", "try: ", "without an edit", "needs no root", "statistics", "costs 64 ns"):
            self.assertIn(needed, text)
        known = set(re.findall(r"(?m)^  (\w[\w-]*) {2,}", self.page("")))
        commands = re.findall(r"(?m)^\| `(\w+)[^`]*` \| \S", text)
        self.assertEqual(len(commands), 8)
        self.assertLessEqual(set(commands), known)

    def test_excerpts(self):
        printed = "one\ntwo\nthree\nfour\n"
        for shown in (printed, "one\n...\nfour\n", "...\ntwo\n...\n", "one\n...\nthree\nfour\n", "...\n"):
            self.assertTrue(pasted.is_excerpt(shown, printed), shown)
        for shown in ("one\n", "two\nthree\nfour\n", "...\nwo\n...\n", "...\nthree\n...\ntwo\n...\n", "...\nfour\nfive\n", "two\n...\n", "...\ntwo\n"):
            self.assertFalse(pasted.is_excerpt(shown, printed), shown)

    def test_pasted_outputs(self):
        """Every output that the documents show is what the program prints; of the doctor, which asks the machine, its causes."""
        with open(os.path.join(SOURCE, "docs/manual/causes.md"), encoding="utf-8") as file:
            causes = file.read()
        exact = doctors = 0
        for name in ["README.md", *glob.glob("docs/**/*.md", root_dir=SOURCE, recursive=True)]:
            with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
                blocks = re.findall(r"(?s)```\n\$ rangescope ([^\n]*)\n(.*?)```", file.read())
            for command, text in blocks:
                with self.subTest(name, command=command):
                    if not command.startswith("doctor"):
                        exact += 1
                        printed = output(*shlex.split(command))
                        self.assertTrue(pasted.is_excerpt(text, printed), f"shown:\n{text}\nprinted:\n{printed}")
                        continue
                    found = re.findall(r"(?m)^(?:ok|warn|fail|skip): ([\w.]+): ", text)
                    doctors += len(found)
                    for cause in found:
                        self.assertTrue(cause in causes or cause in DOCTORS, cause)
                    for line in text.splitlines():
                        self.assertRegex(line, r"^((ok|warn|fail|skip): [\w.]+: .|  (why|hint|try): .|\d+ failures?, \d+ warnings?|\.\.\.|$|[a-z]\S* )")
        self.assertGreater(exact, 4)
        self.assertGreater(doctors, 5)


if __name__ == "__main__":
    cases.main()
