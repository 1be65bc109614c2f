#!/usr/bin/env python3
"""What TAB gives in bash, zsh and fish, asked of the shells themselves. Usage: completion.py BIN_DIR"""
import os
import pty
import select
import shutil
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
TOOL = f"{BIN}/rangescope"
RUN = "20260102-030405-6-host"

# A line before TAB, and what is offered: names of commands, options, values, words, groups behind a comma, runs.
OFFERED = [
    ("pro", ["profile"]),
    ("report --form", ["--format"]),
    ("report --format js", ["json", "jsonl"]),
    ("report -f js", ["json", "jsonl"]),
    ("report -f coll", ["collapsed"]),
    ("query -f js", ["jsonl"]),
    ("runs sho", ["show"]),
    ("profile --metrics mem", ["memory"]),
    ("profile --metrics roofline,mem", ["roofline,memory"]),
    ("report --sort gpu.busy_n", ["gpu.busy_ns"]),
    ("report --columns gpu.busy_ns,wall_ns.med", ["gpu.busy_ns,wall_ns.median"]),
    ("config val", ["validate"]),
    ("report lat", ["latest"]),
    ("runs show 2", [RUN]),
    ("help --completion z", ["zsh"]),
]


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="rangescope-completion-")
        os.makedirs(os.path.join(cls.folder, "rangescope-runs", RUN))
        with open(os.path.join(cls.folder, "rangescope-runs", RUN, "manifest.json"), "w", encoding="utf-8") as file:
            file.write("{}\n")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def script(self, shell):
        """The path of the script, as `rangescope help --completion` prints it."""
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        done = cases.run([TOOL, "help", "--completion", shell])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        path = os.path.join(self.folder, "completion." + shell)
        with open(path, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        return path

    def test_bash(self):
        script = self.script("bash")
        for line, wanted in OFFERED:
            words = ["rangescope", *line.split()]
            done = cases.run(["bash", "-c", f". {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
                              "_rangescope; printf '%s\\n' \"${COMPREPLY[@]}\""], cwd=self.folder)
            self.assertEqual((done.stdout.split(), done.stderr), (wanted, ""), line)

    def test_fish(self):
        script = self.script("fish")
        for line, wanted in OFFERED:
            done = cases.run(["fish", "--no-config", "-c", f"source {script}; complete -C 'rangescope {line}'"], cwd=self.folder,
                             env={**os.environ, "HOME": self.folder})
            self.assertEqual(([each.split("\t")[0] for each in done.stdout.splitlines()], done.stderr), (wanted, ""), line)

    def test_zsh(self):
        """Types each line into an interactive shell. TAB inserts what all that is offered begins with."""
        script = self.script("zsh")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "vt100", "COLUMNS": "200"})
        seen = b""

        def until(path):
            nonlocal seen
            deadline = time.monotonic() + 60
            while not os.path.exists(path) and time.monotonic() < deadline:
                if select.select([terminal], [], [], 0.05)[0]:
                    seen += os.read(terminal, 65536)
            with open(path, encoding="utf-8") as file:
                return file.read()
        try:
            ready = os.path.join(self.folder, "ready")
            os.write(terminal, f"autoload -U compinit; compinit -u -D; source {script}; "
                     f"keep() {{ print -r -- $BUFFER > $PWD/new && mv $PWD/new $PWD/line; BUFFER= }}; zle -N keep; "
                     f"bindkey '^X^K' keep; print > {ready}\n".encode())
            until(ready)
            for line, wanted in OFFERED:
                kept = os.path.join(self.folder, "line")
                os.write(terminal, f"rangescope {line}\t\x18\x0b".encode())
                got = until(kept).split()[-1].rstrip("=,")
                os.remove(kept)
                self.assertEqual(got, os.path.commonprefix(wanted), line)
            self.assertNotRegex(seen.decode(errors="replace"), r"_\w+:\d+: |parse error|not found", "the shell complains")
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(terminal)

    def test_no_other_shell(self):
        self.assertEqual(cases.run([TOOL, "help", "--completion", "tcsh"]).returncode, 64)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
