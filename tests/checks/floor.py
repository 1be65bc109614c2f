"""floor: what is loaded into programs links against an old C library. Usage: floor.py ROOT BUILD COMPILER

The objects of this build are linked as the packages are (cmake/Portable.cmake), and the newest symbol that they ask glibc for is
held to packaging/package.py's floor. Needs packaging/fetch.sh's folder, which `./dev test` fills; it is skipped without.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(root / "packaging"))
import package  # noqa: E402

portable = pathlib.Path(os.environ.get("RANGESCOPE_PORTABLE") or root / ".cache/portable")
if not (portable / ".stamp").exists():
    print(f"skipped: {portable} is not filled (packaging/fetch.sh)")
    sys.exit(77)
commands = json.loads((build / "compile_commands.json").read_text())
for name in ("rangescope_inject", "rangescope_mpi"):
    outputs = (re.search(r" -o (\S+)", one["command"]).group(1) for one in commands)
    objects = sorted(str(build / output) for output in outputs if f"/{name}.dir/" in output)
    if not objects:
        sys.exit(f"{build} has no objects of {name}")
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder, f"lib{name}.so")
        subprocess.run([compiler, "-shared", *objects, f"@{portable}/link", "-lm", "-ldl", "-o", library], check=True)
        try:
            package.hold_to_floor(library)
        except package.Failed as why:
            sys.exit(str(why))
