#!/usr/bin/env python3
"""headers: every header compiles alone.

A header that some .cpp includes before anything else is proven by that compilation, so only the others are compiled here
(syntax only), and those that passed before, with the same text in everything of ours that they include, are not compiled
again (ROOT/.cache/headers holds their hashes). Usage: headers.py ROOT COMPILER
"""
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys

import tree

FIRST = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


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


INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def closure(root, header, seen):
    """Adds the header and all of src/ that it includes to `seen`: {path: text}."""
    if header not in seen and os.path.exists(os.path.join(root, header)):
        seen[header] = tree.text(root, header)
        for name in INCLUDED.findall(seen[header]):
            closure(root, "src/" + name, seen)
    return seen


def fingerprint(root, header, flags):
    texts = closure(root, header, {})
    return hashlib.sha256("\0".join([header, *flags, *(p + "\0" + texts[p] for p in sorted(texts))]).encode()).hexdigest()


def main(root, compiler):
    total, todo = unproven(root)
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    dirs = [f"{cuda}/include", f"{cuda}/extras/CUPTI/include"]
    have = any(os.path.exists(f"{d}/cupti.h") for d in dirs)
    todo = [h for h in todo if have or not needs_cuda(root, h)]
    flags = ["-std=c++20", "-fsyntax-only", "-x", "c++", f'-DRANGESCOPE_SOURCE_DIR="{root}"', f"-I{root}/src", "-isystem", f"{root}/third_party/nvtx3/include"]
    for d in dirs:
        flags += ["-isystem", d]

    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    prints = {h: fingerprint(root, h, [version, *(f for f in flags if root not in f)]) for h in todo}
    stamp = os.path.join(root, ".cache/headers")
    try:
        with open(stamp, encoding="utf-8") as f:
            passed = set(f.read().split())
    except OSError:
        passed = set()
    known = len(todo)
    todo = [h for h in todo if prints[h] not in passed]
    known -= len(todo)

    def compile_alone(header):
        source = f'#include "{header[4:]}"\n#include "{header[4:]}"\n'
        return subprocess.run([compiler, *flags, "-"], input=source, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compile_alone, todo))
    problems = [f"{h}: does not compile alone:\n{r.stderr}" for h, r in zip(todo, results) if r.returncode]
    failed = {h for h, r in zip(todo, results) if r.returncode}
    os.makedirs(os.path.dirname(stamp), exist_ok=True)
    with open(stamp, "w", encoding="utf-8") as f:
        f.write("\n".join(p for h, p in prints.items() if h not in failed))
    return tree.report(problems, f"{total} headers, {len(todo)} of them compiled alone here, {known} passed before")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
