"""What README.md and the manual show is what the program prints.

Usage: samples.py BIN_DIR SOURCE_DIR. Every block that begins with `$ rangescope report tests/golden/...` is held against
that command's output, 120 columns wide. RANGESCOPE_UPDATE_GOLDEN=1 writes the whole ones anew; read the diff.
"""
import glob
import os
import re
import shlex
import sys
import unittest

BIN, SOURCE = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import cases  # noqa: E402
import pasted  # noqa: E402

BLOCK = re.compile(r"```\n\$ (rangescope report tests/golden/[^\n]*)\n(.*?)```\n", re.S)


class Samples(unittest.TestCase):
    def test_blocks_are_what_is_printed(self):
        update, found = os.environ.get("RANGESCOPE_UPDATE_GOLDEN"), 0
        for page in [os.path.join(SOURCE, "README.md"), *glob.glob(os.path.join(SOURCE, "docs", "manual", "*.md"))]:
            with open(page, encoding="utf-8") as file:
                text = file.read()
            new = text
            for command, shown in BLOCK.findall(text):
                found += 1
                done = cases.run([os.path.join(BIN, "rangescope"), *shlex.split(command)[1:]], cwd=SOURCE,
                                 env={**os.environ, "COLUMNS": "120"})
                self.assertEqual(done.returncode, 0, done.stderr)
                if update and "\n...\n" not in "\n" + shown:
                    new = new.replace(f"$ {command}\n{shown}```", f"$ {command}\n{done.stdout}```")
                else:
                    with self.subTest(page=os.path.basename(page), command=command):
                        self.assertTrue(pasted.is_excerpt(shown, done.stdout), f"shown:\n{shown}\nprinted:\n{done.stdout}")
            if new != text:
                with open(page, "w", encoding="utf-8") as file:
                    file.write(new)
        self.assertGreater(found, 0)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
