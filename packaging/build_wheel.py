"""What pip calls for `pip install .` (PEP 517): builds the target `installed` in build/release and packs what CMake installs.

The wheel is for this machine alone; `./dev package` makes those for other machines.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import time

import package

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
BUILD = CHECKOUT / "build/release"


def version():
    return re.search(r"project\(rangescope VERSION ([0-9.]+)", (CHECKOUT / "CMakeLists.txt").read_text()).group(1)


def run(*command):
    print(" ".join(command), file=sys.stderr)
    done = subprocess.run(command, cwd=CHECKOUT, stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: install what the build needs (./dev deps), then try again")


def build():
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed: ./dev deps installs what the build needs")
    if not (BUILD / "build.ninja").exists():
        run("cmake", "--preset", "release")
    run("cmake", "--build", str(BUILD), "--target", "installed")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build()
    tree = BUILD / "wheel"
    package.install(BUILD, tree, "/")
    tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    return package.wheel(tree, CHECKOUT, version(), tag, int(time.time()), pathlib.Path(wheel_directory)).name
