"""try.py RANGESCOPE PROGRAM [MODULE...]: an installed rangescope tried as its user would: a C++ program, one in Python, one with MPI
(PROGRAM-mpi), a page, and the modules of its package. Python 3.9 and later."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

rangescope, program, *names = sys.argv[1:]
PYTHON = """import sys
sys.path[:0] = %r
import rangescope
for i in range(30):
    with rangescope.range("decode", payload=i):
        sum(range(20000))
print(rangescope.backend)
"""
READ = """import sys
sys.path[:0] = %r
import rangescope
run = rangescope.load("latest", runs="runs")
assert run.region("decode").occurrences == 30, run
print(rangescope.command())
"""
IMPORT = """import importlib.util, os, sys
sys.path[:0] = %r
for name in %r:
    try:
        found = importlib.import_module("rangescope." + name).__file__
    except ImportError as missing:
        assert missing.name == "pytest", missing
        found = importlib.util.find_spec("rangescope." + name).origin
    print(os.path.dirname(found))
"""


def call(*command, code=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def regions(*command, said, code=0):
    shown = call(rangescope, "profile", "--runs", "runs", "-f", "json", "-o", "report.json", "--", *command, code=code)
    assert said in shown, shown
    with open("report.json") as f:
        return {" > ".join(region["path"]): region["occurrences"] for region in json.load(f)["regions"]}


os.chdir(tempfile.mkdtemp())
print(call(rangescope, "--version").splitlines()[0])
found = regions(program, said="done", code=7)
assert found["step"] == 20 and found["step > inner"] == 40, found
modules = [os.path.join(os.path.dirname(os.path.dirname(rangescope)), "share/rangescope/python")]
found = regions(sys.executable, "-c", PYTHON % modules, said="rangescope\n")
assert found["decode"] == 30, found
# The package finds its command, and the command its package.
if sys.version_info >= (3, 9):
    assert os.path.samefile(call(sys.executable, "-c", READ % modules).strip(), rangescope)
    asked = subprocess.run([rangescope, "mcp"], input=b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n', stdout=subprocess.PIPE, check=True)
    assert json.loads(asked.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}, asked
    # Every module, in share/rangescope and, where the package is installed for this Python too, there.
    for place in [modules] + [[]] * (importlib.util.find_spec("rangescope") is not None):
        folders = call(sys.executable, "-c", IMPORT % (place, names)).split()
        assert len(folders) == len(names) and len(set(folders)) <= 1, folders
        assert not place or set(folders) <= {os.path.join(place[0], "rangescope")}, folders
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
call("mpirun", "--oversubscribe", "-n", "2", rangescope, "profile", "-q", "--runs", "job", "--", program + "-mpi")
job = json.loads(call(rangescope, "report", "job", "-f", "json"))
reduced = [c for c in job["collectives"] if (c["operation"], c["bytes"], c["ranks"]) == ("MPI_Allreduce", 8192, 2)]
assert [(c["calls"], c["path"]) for c in reduced] == [(10, ["step", "reduce"])], job["collectives"]
call(rangescope, "report", "latest", "--runs", "runs", "-f", "html", "-o", "page.html")
assert os.path.getsize("page.html") > 100000
# Without ranges the program itself is the region, and the exit code is the program's.
found = regions("sh", "-c", "sleep 0.2; exit 3", said="", code=3)
assert found, found
print("works")
