#!/usr/bin/env python3
"""headers: every header compiles alone.

A header that some .cpp includes before anything else is proven by that compilation, so only the others are compiled here
(syntax only), and those that passed before, with the same text in everything of ours that they include, are not compiled
again (ROOT/.cache/headers holds their hashes).

Most of the time goes into the headers of libraries. Two things spare it, and neither hides a forgotten include:
- A header follows another in one compilation only if it includes that one and everything in it, directly or through our
  other headers. It sees what it would see alone.
- What many headers include is precompiled (PRELUDES), for those that include all of it.
Usage: headers.py ROOT COMPILER
"""
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys
import tempfile

import tree

FIRST = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
INCLUDED = re.compile(r'^\s*#\s*include\s*("[^"]+"|<[^>]+>)', re.M)

# The first whose names a header includes, all of them, is taken.
PRELUDES = (
    ('"model/session.hpp"',),
    ('"model/range.hpp"',),
    ("<string>",),
    ("<vector>",),
    ("<string_view>",),
)


def unproven(root):
    headers = tree.files(root, (".hpp",), under=("src",))
    proven = set()
    for path in tree.files(root, (".cpp",), under=("src",)):
        first = FIRST.search(tree.text(root, path))
        if first:
            proven.add("src/" + first.group(1))
    return len(headers), [h for h in headers if h not in proven]


def needs_cuda(root, path):
    return path.startswith(("src/inject/cupti/", "src/sample/gpu/")) or "cupti.h" in tree.text(root, path)


class Closure:
    """All that a header includes, also through other headers of ours."""

    def __init__(self, root, header):
        self.texts = {}                   # path -> text of those of src/, the header too
        self.names = {included(header)}   # "room/name.hpp" of src/, <name> of libraries
        self._add(root, header)
        self.prelude = next((prelude for prelude in PRELUDES if self.names.issuperset(prelude)), ())

    def _add(self, root, path):
        self.texts[path] = tree.text(root, path)
        for name in INCLUDED.findall(self.texts[path]):
            self.names.add(name)
            ours = "src/" + name[1:-1]
            if name[0] == '"' and ours not in self.texts and os.path.exists(os.path.join(root, ours)):
                self._add(root, ours)

    def fingerprint(self, header, flags):
        rows = [header, *flags, *(f"{path}\0{self.texts[path]}" for path in sorted(self.texts))]
        return hashlib.sha256("\0".join(rows).encode()).hexdigest()


def included(header):
    """As it is included: "room/name.hpp" with its quotes."""
    return '"' + header.removeprefix("src/") + '"'


def chains(closures):
    """Lists of headers, each header in one: those after the first include all that comes before them."""
    found = []
    for header in sorted(closures, key=lambda header: (len(closures[header].names), header)):
        closure = closures[header]
        fits = [chain for chain in found if closures[chain[-1]].names <= closure.names
                and closures[chain[0]].prelude == closure.prelude]
        if fits:
            max(fits, key=lambda chain: len(closures[chain[-1]].names)).append(header)
        else:
            found.append([header])
    return found


class Compiler:
    def __init__(self, command, flags, folder):
        self.command, self.flags, self.folder = command, flags, folder
        self.precompiled = {(): []}  # prelude -> options with which it comes first

    def precompile(self, prelude):
        path = os.path.join(self.folder, f"prelude{PRELUDES.index(prelude)}.hpp")
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(f"#include {name}\n" for name in prelude))
        done = self.run("-x", "c++-header", path, "-o", path + ".gch")
        # Where it does not compile, the headers that include it say why.
        self.precompiled[prelude] = ["-include", path] if done.returncode == 0 else []

    def check(self, headers, prelude):
        """What is wrong with headers that may follow each other; nothing where they compile."""
        twice = "".join(f"#include {included(header)}\n" * 2 for header in headers)
        done = self.run("-fsyntax-only", "-x", "c++", *self.precompiled[prelude], "-", input=twice)
        return done.stderr if done.returncode else None

    def run(self, *words, **options):
        return subprocess.run([self.command, *self.flags, *words], capture_output=True, text=True, **options)


def compile_alone(compiler, closures):
    """{header: what the compiler says} of those that do not compile."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compiler.precompile, {closure.prelude for closure in closures.values()} - {()}))
        together = chains(closures)
        wrong = pool.map(lambda chain: compiler.check(chain, closures[chain[0]].prelude), together)
        suspects = [header for chain, said in zip(together, wrong) if said is not None for header in chain]
        alone = pool.map(lambda header: compiler.check([header], ()), suspects)
        return {header: said for header, said in zip(suspects, alone) if said is not None}


def main(root, command):
    total, todo = unproven(root)
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    dirs = [f"{cuda}/include", f"{cuda}/extras/CUPTI/include"]
    have = any(os.path.exists(f"{d}/cupti.h") for d in dirs)
    todo = [h for h in todo if have or not needs_cuda(root, h)]
    flags = ["-std=c++20", f"-I{root}/src", "-isystem",
             f"{root}/third_party/nvtx3/include"]
    for d in dirs:
        flags += ["-isystem", d]

    version = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
    closures = {h: Closure(root, h) for h in todo}
    marks = [version, *(f for f in flags if root not in f)]
    prints = {h: closure.fingerprint(h, marks) for h, closure in closures.items()}
    stamp = os.path.join(root, ".cache/headers")
    try:
        with open(stamp, encoding="utf-8") as f:
            passed = set(f.read().split())
    except OSError:
        passed = set()
    unknown = {h: closure for h, closure in closures.items() if prints[h] not in passed}

    with tempfile.TemporaryDirectory(prefix="rangescope-headers-") as folder:
        failed = compile_alone(Compiler(command, flags, folder), unknown)
    problems = [f"{h}: does not compile alone:\n{said}" for h, said in failed.items()]
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    with open(stamp, "w", encoding="utf-8") as f:
        f.write("\n".join(p for h, p in prints.items() if h not in failed))
    before = len(todo) - len(unknown)
    return tree.report(problems, f"{total} headers, {len(unknown)} of them compiled alone here, {before} passed before")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
