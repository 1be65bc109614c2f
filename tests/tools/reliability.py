#!/usr/bin/env python3
"""Who changes what a program does: the programs of this list, bare and under each profiler, as a Markdown table.

A cell is empty where output and end are those of the bare program, else it says what became of them. Each program runs
in a folder of its own, twice bare: one that differs there is left out. Usage: reliability.py BIN_DIR [TOOL...]
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

BIN = os.path.abspath(sys.argv[1])
LIMIT = 60  # seconds; more is "hangs"

TOOLS = {
    "rangescope": [os.path.join(BIN, "rangescope"), "profile", "-q", "--no-project", "--runs", "{}/runs", "--"],
    "heaptrack": ["heaptrack", "-o", "{}/heaptrack"],
    "perf": ["perf", "record", "-q", "-e", "task-clock", "-o", "{}/perf.data", "--"],
    "strace": ["strace", "-f", "-o", "{}/strace"],
}

# What a tool itself says on the program's standard output, told in one row.
TALK = re.compile(r"(heaptrack output will|/.*libheaptrack|starting application|Heaptrack finished|  heaptrack --analyze|$)")

PYTHON = sys.executable + " -c "
PROGRAMS = [  # what it shows, shell script; $B is the folder of the victims, $T a file for their truth
    ("standard output", "echo one"),
    ("exit code", "exit 3"),
    ("end by a signal", "kill -SEGV $$"),
    ("standard output is the file it was", "readlink /proc/$$/fd/1 | sed 's,.*/,,'"),
    ("descriptors", "ls /proc/$$/fd >list; wc -l <list"),
    ("signal handlers and masks", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/$$/status"),
    ("the same of a program that uses NVTX",
     f"exec {PYTHON}'import ctypes, os, re; ctypes.CDLL(os.environ[\"L\"] + \"/libvictim_client.so\").client_push(b\"x\"); "
     "print(*re.findall(\"Sig(?:Blk|Ign|Cgt).*\", open(\"/proc/self/status\").read()), sep=chr(10))'"),
    ("a parent of its own choice", "(sh -c 'sleep 0.3; cut -d\" \" -f4 /proc/$$/stat >p' &); sleep 1; test $(cat p) = 1 && echo init"),
    ("`setsid` without a terminal", f"exec {PYTHON}'import os; os.setsid(); print(1)'"),
    ("late output of a background child", "(sleep 2; echo late) & echo early"),
    ("a reader that goes away", "yes | head -1"),
    ("4 descriptors", "ulimit -n 4; $B/victim leaf; echo $?"),
    ("fork while a thread registers", "exec $B/interrupted fork_while_registering $T"),
    ("cancellation with a lock held", "exec $B/interrupted cancel_with_lock $T"),
    ("handlers that use NVTX", "exec $B/interrupted handler_registers $T; echo $?"),
    ("handlers that jump", "$B/interrupted handler_jumps $T; echo $?"),
    ("random schedule", "$B/interrupted schedule $T 4; echo $?"),
    ("seccomp filter that kills", "$B/cornered filtered; echo $?"),
    ("bus errors", "$B/cornered own_bus_error handled; echo $?; $B/cornered own_bus_error sent 2>/dev/null; echo $?"),
    ("8 namespaces of the linker", "$B/cornered namespaces $L/libvictim_client.so; echo $?"),
    ("11 namespaces of the linker", "$B/cornered namespaces $L/libvictim_client.so 11; echo $?"),
]


def run(prefix, script):
    """(standard output, end) in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="rangescope-reliability-")
    env = {**os.environ, "B": BIN, "L": os.path.join(os.path.dirname(BIN), "lib"), "T": os.path.join(folder, "truth")}
    # A range in each: a program without any has exit code 80 under rangescope.
    argv = [word.replace("{}", folder) for word in prefix] + ["sh", "-c", "$B/cornered leaf; " + script]
    try:
        with open(os.path.join(folder, "out"), "w+", encoding="utf-8", errors="replace") as out:
            running = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                code = running.wait(LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
                return "", "hangs"
            if "late" in script:
                subprocess.run(["sleep", "4"], check=True)  # whoever it is that writes it
            out.seek(0)
            return out.read(), signal.Signals(-code).name if code < 0 else f"exit {code}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def difference(what, bare, seen):
    """What is unlike; "" where nothing is."""
    if what != "standard output":
        seen = "".join(line for line in seen[0].splitlines(True) if not TALK.match(line.rstrip("\n"))), seen[1]
    if seen == bare:
        return ""
    if seen[1] != bare[1]:
        return f"{seen[1]}, not {bare[1]}"
    extra = [line for line in seen[0].splitlines() if line not in bare[0].splitlines()]
    missing = [line for line in bare[0].splitlines() if line not in seen[0].splitlines()]
    extra, missing = ([" ".join(line[:40].split()) for line in lines[:1]] for lines in (extra, missing))
    if missing and extra:
        return f"`{extra[0]}`, not `{missing[0]}`"
    return f"no `{missing[0]}`" if missing else f"prints `{extra[0]}`" if extra else "prints otherwise"


def main():
    names = [name for name in (sys.argv[2:] or TOOLS) if shutil.which(TOOLS[name][0])]
    print("| program | " + " | ".join(names) + " |\n|:--|" + ":--|" * len(names), flush=True)
    for what, script in PROGRAMS:
        bare = run([], script)
        if run([], script) != bare:
            print(f"{what}: differs from run to run", file=sys.stderr)
            continue
        print(f"| {what} | " + " | ".join(difference(what, bare, run(TOOLS[name], script)) for name in names) + " |", flush=True)


if __name__ == "__main__":
    main()
