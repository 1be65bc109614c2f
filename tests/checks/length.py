#!/usr/bin/env python3
"""length: no source file over 700 lines. Usage: length.py ROOT"""
import sys

import tree

LIMIT = 700
SUFFIXES = tree.CODE + (".py", ".sh", ".ts", ".cmake", "CMakeLists.txt")


def too_long(path, content):
    lines = content.count("\n")
    return [f"{path}: {lines} lines, {LIMIT} are allowed: split it"] if lines > LIMIT else []


def main(root):
    paths = tree.files(root, SUFFIXES, under=("src", "tests", "workloads", "cmake", "web")) + ["dev"]
    problems = [p for path in paths for p in too_long(path, tree.text(root, path))]
    return tree.report(problems, f"{len(paths)} files of at most {LIMIT} lines")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
