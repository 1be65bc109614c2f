#!/usr/bin/env python3
"""length: no source file over 850 lines, no line of src over 120 columns. Usage: length.py ROOT"""
import sys

import tree

LIMIT = 850
COLUMNS = 120
SUFFIXES = tree.CODE + (".py", ".sh", ".ts", ".cmake", "CMakeLists.txt")


def too_long(path, content):
    lines = content.count("\n")
    return [f"{path}: {lines} lines, {LIMIT} are allowed: split it"] if lines > LIMIT else []


def too_wide(path, content):
    wide = [n for n, line in enumerate(content.split("\n"), 1) if len(line) > COLUMNS] if path.startswith("src/") else []
    return [f"{path}:{n}: over {COLUMNS} columns" for n in wide]


def main(root):
    paths = tree.files(root, SUFFIXES, under=("src", "tests", "workloads", "cmake", "web")) + ["dev"]
    problems = [p for path in paths for check in (too_long, too_wide) for p in check(path, tree.text(root, path))]
    return tree.report(problems, f"{len(paths)} files of at most {LIMIT} lines and {COLUMNS} columns")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
