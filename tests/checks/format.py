#!/usr/bin/env python3
"""format: clang-format 14 agrees with every file. `./dev fmt` mends. Usage: format.py ROOT"""
import concurrent.futures
import os
import shutil
import subprocess
import sys

import tree

TOOL = "clang-format-14"


def main(root):
    if not shutil.which(TOOL):
        print(f"{TOOL} is missing: ./dev deps installs it")
        return 1 if os.environ.get("CI") else 77
    paths = tree.files(root, tree.CODE)
    batches = [paths[i::8] for i in range(8) if paths[i::8]]

    def run(batch):
        return subprocess.run([TOOL, "--dry-run", "--Werror", *batch], cwd=root, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, batches))
    lines = [line for r in results for line in r.stderr.splitlines() if "error:" in line]
    if not lines and any(r.returncode for r in results):
        lines = [r.stderr.strip() for r in results if r.returncode]
    names = sorted({line.split(":")[0] for line in lines})
    return tree.report([f"{n}: not formatted (./dev fmt)" for n in names], f"{len(paths)} files are formatted")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
