"""The project's own source files, as the checks see them."""
import os

SKIP = {".git", "build", ".cache", "node_modules", "rangescope-runs", "third_party", ".gpu", "dist"}
CODE = (".cpp", ".hpp", ".cu", ".cuh", ".h", ".c")


def files(root, suffixes, under=("src", "tests", "workloads")):
    """Paths relative to root, sorted."""
    found = []
    for top in under:
        for folder, names, entries in os.walk(os.path.join(root, top)):
            names[:] = sorted(n for n in names if n not in SKIP)
            found += [os.path.relpath(os.path.join(folder, e), root) for e in sorted(entries) if e.endswith(suffixes)]
    return found


def text(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def report(problems, what):
    """Prints the problems; the exit code of the check."""
    for p in problems:
        print(p)
    print(f"{len(problems)} problems" if problems else f"ok: {what}")
    return 1 if problems else 0
