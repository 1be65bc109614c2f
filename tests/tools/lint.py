#!/usr/bin/env python3
"""lint: clang's warnings and clang-tidy over every source, as errors, without building anything.

Two passes over what `cmake` wrote when it configured the presets:

- build/clang-alone: clang reads each file by itself (-fsyntax-only). A file that includes less than
  it uses fails here, where the unity builds of the other presets hide it.
- build/clang: clang-tidy reads src/ in unity files of eight, which takes a third of the time that
  the files take one by one.

Usage: lint.py ROOT
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

WARNINGS = ["-Werror", "-Wshadow", "-Wshadow-uncaptured-local"]
TIDY = "clang-tidy-14"


def commands(root, preset):
    """The entries of a compilation database that compile sources of this project."""
    with open(f"{root}/build/{preset}/compile_commands.json", encoding="utf-8") as database:
        entries = json.load(database)
    return [entry for entry in entries
            if "/third_party/" not in entry["file"] and "/cmake_pch." not in entry["file"]
            and entry["file"].endswith((".cpp", ".cxx", ".c"))]


def syntax_arguments(entry):
    """The command of an entry, without its output and without a launcher such as ccache."""
    words = shlex.split(entry["command"])
    compiler = next(index for index, word in enumerate(words) if "clang" in os.path.basename(word))
    arguments = words[compiler:]
    output = arguments.index("-o")
    del arguments[output:output + 2]
    warnings = WARNINGS if "-Wall" in arguments else ["-Werror"]  # programs that play a user's have no -Wall
    return [*arguments, "-fsyntax-only", *warnings]


def run(arguments, folder):
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, errors="replace",
                          check=False)
    return done.returncode, done.stdout + done.stderr


def check_alone(entry):
    return run(syntax_arguments(entry), entry["directory"])


def check_tidy(entry, database):
    code, output = run([TIDY, "-quiet", "-p", database, entry["file"]], entry["directory"])
    counted = ("warnings generated", "Suppressed ", "Use -header-filter")
    lines = [line for line in output.splitlines() if not any(words in line for words in counted)]
    return code, "\n".join(lines)


def main(root):
    alone = commands(root, "clang-alone")
    database = f"{root}/build/clang"
    source_folders = (f"{root}/src/", f"{database}/src/")
    tidy = [entry for entry in commands(root, "clang") if entry["file"].startswith(source_folders)]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # Unity files take longest: they begin first.
        jobs = {pool.submit(check_tidy, entry, database): entry for entry in tidy}
        jobs |= {pool.submit(check_alone, entry): entry for entry in alone}
        for job in concurrent.futures.as_completed(jobs):
            code, output = job.result()
            if code == 0:
                continue
            failures += 1
            print(f"lint: {os.path.relpath(jobs[job]['file'], root)}\n{output}", file=sys.stderr)
    print(f"lint: {len(alone)} files alone, {len(tidy)} by {TIDY}: {failures} with findings", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
