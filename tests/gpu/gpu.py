"""What the GPU tests share: the machine's tools, programs built once, runs of rangescope, and figures to keep.

A case is an ordinary unittest method. What this machine lacks (a tool, PyTorch, a second GPU, time) skips it and is counted.
"""
import json
import os
import shutil
import subprocess
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = OUT = ""  # set by start()
BEGIN = time.time()
BUDGET = float(os.environ.get("BUDGET", "100000"))
figures = []  # {"name", "value", "unit", "detail"}: what a run measured and no case holds against a limit


def start(build, out):
    global BUILD, OUT
    BUILD, OUT = os.path.abspath(build), os.path.abspath(out)
    os.makedirs(OUT, exist_ok=True)
    os.environ["PATH"] = f"{BUILD}/bin:{os.environ['PATH']}"


def figure(name, value, unit, detail=""):
    figures.append({"name": name, "value": value, "unit": unit, "detail": detail})
    print(f"    {name}: {value:.6g} {unit} {detail}", flush=True)


def tool(name, *places):
    """The path of a program: $NAME, PATH, then the places; None where there is none."""
    found = os.environ.get(name.upper()) or shutil.which(name)
    return found or next((place for place in places if os.access(place, os.X_OK)), None)


def ncu():
    return tool("ncu", "/usr/local/cuda/bin/ncu")


def nsys():
    return tool("nsys", "/usr/local/cuda/bin/nsys")


def python():
    """A Python with PyTorch that sees a GPU, else None."""
    if not hasattr(python, "found"):
        path = tool("python", "/usr/bin/python3") or "python3"
        done = subprocess.run([path, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True, check=False)
        python.found = path if done.returncode == 0 else None
    return python.found


def need(what, found):
    if not found:
        raise unittest.SkipTest(f"no {what} on this machine")
    return found


def time_left(seconds):
    if time.time() - BEGIN + seconds > BUDGET:
        raise unittest.SkipTest(f"{seconds} s more would pass the budget of {BUDGET:.0f} s")


def program(name):
    """tests/gpu/NAME.cu, built by nvcc unless BUILD or OUT has it."""
    for folder in (f"{BUILD}/gpu", f"{BUILD}/bin", OUT):
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    nvcc = need("nvcc", tool("nvcc", "/usr/local/cuda/bin/nvcc"))
    subprocess.run([nvcc, "-O2", "-std=c++17", "-arch=native", "-lineinfo", f"-I{ROOT}/third_party/nvtx3/include", f"{HERE}/{name}.cu", "-o",
                    f"{OUT}/{name}"], check=True)
    return f"{OUT}/{name}"


class Done:
    """A finished command: code, out, err, seconds."""

    def __init__(self, argv, limit=120, env=None, cwd=None):
        begin = time.time()
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=limit,
                                  env=dict(os.environ, **(env or {})), cwd=cwd or OUT, check=False)
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            self.code, self.out, self.err = "timeout", str(late.stdout or ""), str(late.stderr or "")
        self.seconds = time.time() - begin


class Run(Done):
    """A run of `rangescope profile OPTIONS -- COMMAND`; `folder` is its run directory, `report` its report.json."""

    def __init__(self, name, options, command, **more):
        self.folder = f"{OUT}/{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        super().__init__([f"{BUILD}/bin/rangescope", "profile", "--no-project", "-q", f"run.dir={self.folder}", *options, "--", *command], **more)

    @property
    def report(self):
        with open(f"{self.folder}/report.json", encoding="utf-8") as f:
            return json.load(f)

    @property
    def status(self):
        with open(f"{self.folder}/status.json", encoding="utf-8") as f:
            return json.load(f)


def regions(report):
    """{path joined by " > ": region} of the regions over all processes."""
    return {" > ".join(r["path"]): r for r in report["regions"] if r["process"] is None}


def value(region, metric):
    """A metric's value in ncu's terms (percent for shares), None where it was not measured."""
    got = region["metrics"].get(metric)
    if got is None or got["value"] is None:
        return None
    return got["value"] * 100 if ".pct" in metric and got["unit"] == "ratio" else got["value"]
