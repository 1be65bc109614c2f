#!/usr/bin/env python3
"""Help, and the words that are understood. Usage: help.py BIN_DIR"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
from commands import VICTIM, InAFolder  # noqa: E402


class Help(InAFolder):
    def commands(self):
        """{title of the list of commands: its commands}."""
        listed = self.tool("help").stdout.split("Options:")[0]
        return {title: re.findall(r"(?m)^  (\w+) ", lines) for title, lines in re.findall(r"(?m)^(\w+):\n((?:  .*\n)+)", listed)}

    def test_the_list_of_commands_is_in_groups(self):
        self.assertEqual(self.commands(), {"Run": ["profile", "attach", "ctl"], "Look": ["report", "query", "export"], "Compare": ["compare", "gate"],
                                           "Keep": ["runs"], "Other": ["config", "metrics", "doctor", "mcp", "help"]})
        listed = self.tool("help").stdout
        self.assertRegex(listed, r"(?m)^  --version ")
        self.assertRegex(listed, r"(?m)^The manual: +https://\S+/docs/manual$")
        self.assertLessEqual(max(map(len, listed.splitlines())), 80)

    def test_help_fits_a_screen_and_help_all_has_the_rest(self):
        commands = [[command] for group in self.commands().values() for command in group]
        verbs = [[command, verb] for command in ("runs", "metrics") for verb in self.verbs(command)]
        for words in commands + verbs:
            short, everything = self.tool(*words, "--help").stdout, self.tool(*words, "--help-all").stdout
            with self.subTest(words):
                self.assertLessEqual(len(short.splitlines()), 40)
                for page in (short, everything):
                    self.assertLessEqual(max(map(len, page.splitlines())), 80)
                self.assertTrue(short.startswith(everything.splitlines()[0]), "one summary")
                self.assertIn(f"rangescope {' '.join(words)} --help-all", short)
                options = set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", short))
                self.assertLessEqual(options, set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", everything)))
                arguments = re.search(r"(?m)^Arguments:\n((?:  .*\n)+)", short)
                self.assertNotRegex(arguments.group(1) if arguments else "", r"(?m)^  -")

    def verbs(self, command):
        """The words of a command, as its Usage lists them."""
        usage = re.search(r"(?m)^Usage: rangescope \w+ <verb> .*\n((?:  .*\n)+)", self.tool(command, "--help").stdout)
        return re.findall(r"(?m)^  (\w+)", usage.group(1))

    def test_verbs_are_in_usage(self):
        self.assertEqual(self.verbs("config"), ["show", "explain", "groups", "validate", "trust", "init"])
        self.assertEqual(self.verbs("runs"), ["list", "show", "prune", "verify", "stats", "import", "push", "history"])
        self.assertEqual(self.verbs("metrics"), ["list", "show", "search", "plan", "calibrate"])
        self.assertEqual(self.tool("help", "runs", "prune").stdout, self.tool("runs", "prune", "--help").stdout)
        self.assertEqual(self.tool("help", "runs", "prone").returncode, 64)

    def test_words_of_other_tools_are_answered_with_ours(self):
        self.tool("profile", "-q", VICTIM)
        for words, ours in ((["profile", "--duration", "5", "--", VICTIM], "Write --for 5s\n"), (["attach", "-d", "500ms", "1"], "Write --for 500ms\n"),
                            (["profile", "--duration", "--", VICTIM], "Write --for 10s\n"), (["profile", "-F", "999", "--", VICTIM], "--cpu 999Hz\n"),
                            (["profile", "-n", "4", "--", VICTIM], "--repeat 4; several processes: mpirun -n 4 rangescope profile"), (["report", "-n", "4"], "--top 4"),
                            (["report", "--pid", "1"], "rangescope attach 1\n"), (["report", "--pid", "x"], "rangescope attach PID\n"), (["report", "--html"], "Write -o report.html"),
                            (["report", "--csv"], "Write -f csv"), (["report", "--open"], "open that page in a browser"),
                            (["profile", "--trace=cuda", "--", VICTIM], "always recorded"), (["top"], "profile --watch -- ./app"),
                            (["record"], "'profile'"), (["stat", "x", "-p"], "rangescope profile -- x -p\n"), (["dump"], "attach PID --dump"),
                            (["record", "--pid", "7", "-d", "5", "-o", "a b.html"], "rangescope attach 7 --for 5s -o 'a b.html'\n"),
                            (["record", "--pid=7", "-o", "f.svg"], "rangescope attach 7 -o f.html\n"),
                            (["record", "-o", "perf.data", "./app"], "rangescope profile -- ./app\n"),
                            (["record", "-g", "-F", "999", "--", "./app", "-x"], "rangescope profile --cpu 999Hz -- ./app -x\n"),
                            (["record", "--unknown", "5"], "'profile'"), (["top", "-p", "7"], "rangescope attach 7 --watch\n"),
                            (["dump", "--pid=7"], "rangescope attach 7 --dump\n"), (["dump", "--pid", "x"], "attach PID --dump, or"),
                            (["query", "latest", "--json"], "Write -f jsonl"), (["query", "latest", "--csv"], "Write -f csv\n"),
                            (["export", "latest", "--csv"], "Write -f csv\n"), (["profile", "--stats=true", "--", VICTIM], "leave it out"),
                            (["profile", "--rate", "100", "--", VICTIM], "--cpu 100Hz"), (["report", "-d", "5"], "See rangescope help report"),
                            (["metrics"], "Write one of list"), (["query", "latest", "--to"], "did you mean")):
            done = self.tool(*words)
            self.assertEqual(done.returncode, 64, words)
            self.assertRegex(done.stderr, r"hint: [^\n]*" + re.escape(ours), words)
            if words[-1].startswith("-") and words[0] not in ("record", "stat", "top", "dump"):
                self.assertIn(f"unknown option '{words[-1]}'", done.stderr)

    def test_one_word_has_one_meaning(self):
        """-o is a file and -f a format wherever they are, and --runs the folder of runs."""
        for command in (command for group in self.commands().values() for command in group):
            page = self.tool(command, "--help-all").stdout
            for short, long in re.findall(r"(?m)^  (-[of]), (--\w+)", page):
                self.assertEqual(long, {"-o": "--output", "-f": "--format"}[short], command)
            self.assertNotRegex(page, r"(?m)^  (--to|--root)\b", command)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
