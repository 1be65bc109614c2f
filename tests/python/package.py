"""What the tests of python/rangescope share: the package in the path, its command, and what a machine must have."""
import importlib.util
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import cases  # noqa: E402

BIN, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
COMMAND = f"{BIN}/rangescope"
os.environ.update(RANGESCOPE=COMMAND, PYTHONPATH=f"{ROOT}/python")
sys.path.insert(0, f"{ROOT}/python")
# Its ranges take the time of a clock of its own (tests/clock): the same on any machine.
PROGRAM = """import ctypes, rangescope
clock = ctypes.CDLL(None)
clock.worked.argtypes = [ctypes.c_longlong]
clock.worked(0)
for step in range(3):
    with rangescope.range("step", payload=step):
        with rangescope.range("load <b>&amp;"):
            clock.worked(2000000)
        with rangescope.range("compute"):
            clock.worked(5000000)
"""
OWN_CLOCK = os.path.join(BIN, "..", "lib", "libown_clock.so")
PYTHON = ["env", "LD_PRELOAD=" + OWN_CLOCK, sys.executable]


def golden(name):
    return os.path.join(ROOT, "tests", "golden", name)


def need(case, *modules, tool=None):
    """Skips by name what Debian's package of this name would bring; in CI a skip is a failure."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            case.skipTest(f"python3-{module} is not installed")
    if tool and not shutil.which(tool):
        case.skipTest(f"{tool} is not installed")
