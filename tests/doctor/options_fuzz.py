#!/usr/bin/env python3
"""Random option lines of ncu: its own parser, the doctor and the planner agree about each.

Usage: options_fuzz.py BIN_DIR [COUNT [SEED]]. ncu 2022.3.0 stands in $RANGESCOPE_TOOLS/bin; without it, exit code 77.
ncu judges a line before it starts the program, and says then that it finds no driver: it needs no GPU for this.

  doctor   a finding of grade fail where ncu refuses, none where it takes the line; its corrected line is taken
  planner  the same options as keys of `profile`: refused, or planned as a line that ncu takes; never refused where ncu takes it

ncu's expressions are Boost's; of what only RE2 lacks (look-ahead) the planner takes none, since its own stages could not follow.
Lines that ncu takes although they measure nothing are refused by both all the same: SILENT names these causes.
"""
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(sys.argv[1])
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 40
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
TOOLS = os.path.join(os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools")), "bin")
NCU = os.path.join(TOOLS, "ncu")

# Option, its key below pipeline.ncu.ncu_cli (or None), and values: (right ones, wrong ones). "": no value is taken.
FLAG = None
YESNO = (["yes", "no", "on", "off", "1", "0", "true", "false"], ["maybe", "2", "YES", "y"])
RANGES = (["A/", "A", "LLM@A/", "A/B/", "[A/", "A]", "A/*/B/", "regex:A.*/", "regex:^A$/", "A/,B", "A,B", "*/A/", "LLM@[A"],
          ["@A/", "A@", "A@B@C", "", "/", "[", "regex:(/", "regex:", "A//B/", "/A/", "A/+/B/", "LLM@", "A/*", "A\\@B/", "A\\/"])
OPTIONS = {
    "--kernel-id": ("kernel_id", (["::gemm:2", ":::5", "::regex:^ge:3", ":7:regex:^foo:", "1::gemm:", ":::.*5|3", ":::.*0", ":::5|10|15",
                                   ":::", "::gemm:", "::a:[05]0", "::a:^5$", "::a:(5|6)", "::a:1,5", "0:0:a:1", "::a:5."],
                                  ["gemm", "::gemm", "5:10:2", "5::10::2", ":::regex:.*5", "::a:b:c", "::gemm:x", "::a:5a", "::a:.*",
                                   "::a:\\d", "::Regex:a:5", "::regex:(:5", "::regex:*:5", "ctx:::5", ":stream::5", "::a::5", ":::::",
                                   "1a:::5", "::a:*", "::a:-"])),
    "--kernel-name": ("kernel_name", (["gemm", "regex:gemm", "regex:.*gemm.*", "regex:^(a|b)$", "regex:a{2}", "regex:[ab]+", "my kernel",
                                       "regex:", "regex:a|", "regex:\\bgemm"],
                                      ["regex:(", "regex:[a", "regex:*a", "regex:a)", "regex:a{2,1}", "regex:?a", "regex:a\\"])),
    "--kernel-name-base": ("kernel_name_base", (["function", "demangled", "mangled"], ["name", "Function", ""])),
    "--launch-count": ("launch_count", (["1", "5", "100"], ["0", "x", "1.5", ""])),
    "--launch-skip": ("launch_skip", (["0", "3", "50"], ["x", "2.5", ""])),
    "--launch-skip-before-match": ("launch_skip_before_match", (["0", "7"], ["x"])),
    "--filter-mode": ("filter_mode", (["global", "per-gpu"], ["per-launch", "all", "Global"])),
    "--devices": ("devices", (["0", "0,1"], ["x", "0,x"])),
    "--kill": ("kill", YESNO),
    "--replay-mode": ("replay_mode", (["kernel", "application", "range"], ["kernels", "app", "Range"])),
    "--app-replay-match": ("app_replay_match", (["name", "grid", "all"], ["exact"])),
    "--app-replay-mode": ("app_replay_mode", (["strict", "relaxed"], ["loose", "balanced"])),
    "--app-replay-buffer": ("app_replay_buffer", (["file", "memory"], ["disk"])),
    "--range-replay-options": ("range_replay_options", (["enable-greedy-sync", "disable-host-restore",
                                                         "enable-greedy-sync,disable-host-restore"], ["sync", "none"])),
    "--target-processes": ("target_processes", (["all", "application-only"], ["1", "yes", "ALL"])),
    "--target-processes-filter": ("target_processes_filter", (["python", "regex:py.*", "a,b"], ["regex:("])),
    "--cache-control": ("cache_control", (["all", "none"], ["some"])),
    "--clock-control": ("clock_control", (["base", "none"], ["boost", "max"])),
    "--set": ("set", (["default", "detailed", "full", "roofline", "source"], [])),
    "--section": ("sections", (["SpeedOfLight", "Occupancy", "regex:Speed.*", "LaunchStats"], ["NoSuch", "speedoflight", "regex:("])),
    "--metrics": ("metrics", (["dram__bytes.sum", "sm__cycles_elapsed.avg,dram__bytes.sum", "regex:dram__bytes"], [])),
    "--nvtx": (None, FLAG),
    "--nvtx-include": ("nvtx.include", RANGES),
    "--nvtx-exclude": ("nvtx.exclude", RANGES),
    "--profile-from-start": ("profile_from_start", YESNO),
    "--check-exit-code": ("check_exit_code", YESNO),
    "--apply-rules": ("apply_rules", YESNO),
    "--import-source": ("import_source", YESNO),
    "--call-stack": ("call_stack", FLAG),
    "--sampling-interval": ("warp_sampling_interval", (["auto", "0", "31"], ["32", "x"])),
    "--sampling-max-passes": ("warp_sampling_max_passes", (["5"], ["x"])),
    "--csv": (None, FLAG),
    "--page": (None, (["details", "raw", "source"], ["session", "Raw"])),
    "--print-summary": (None, (["none", "per-gpu", "per-kernel", "per-nvtx"], ["all", "kernel"])),
    "--print-units": (None, (["auto", "base"], ["si"])),
    "--print-source": (None, (["sass", "ptx", "cuda", "cuda,sass"], ["asm"])),
    "--print-details": (None, (["header"], [])),
    "--kernel-replay-mode": (None, (["range"], [])),
    "--range-filter": ("range_filter", (["::2"], [])),
    "--graph-profiling": ("graph_profiling", (["graph"], [])),
    "--no-such": (None, FLAG),
}
REPEATED = {"--section", "--nvtx-include", "--nvtx-exclude"}
OFTEN = ["--kernel-id", "--kernel-name", "--launch-skip", "--launch-count", "--replay-mode", "--nvtx-include", "--filter-mode"]
RARE = ["--kernel-replay-mode", "--range-filter", "--graph-profiling", "--no-such", "--print-details"]


def line(rng):
    """[(option, value or None)], most of them right."""
    names = [n for n in OPTIONS if n not in RARE]
    chosen = rng.sample(names, rng.randint(0, 3)) + rng.sample(OFTEN, rng.randint(0, 3))
    if rng.random() < 0.05:
        chosen.append(rng.choice(RARE))
    if any(n.startswith("--nvtx-") for n in chosen) and rng.random() < 0.9:
        chosen.append("--nvtx")
    if rng.random() > 0.03:
        chosen = list(dict.fromkeys(chosen)) + [n for n in chosen if n in REPEATED and rng.random() < 0.3]
    rng.shuffle(chosen)
    words = []
    for name in chosen:
        values = OPTIONS[name][1]
        right, wrong = values or ([], [])
        value = None if not values else rng.choice(wrong if wrong and rng.random() < 0.12 else right)
        words.append((name, value))
    return words


# What the doctor and the planner refuse although ncu takes the line without a word: nothing would be measured.
SILENT = {"command.unknown_set", "command.kernel_name_pattern", "command.kernel_name_base", "command.bad_expression",
          "command.list_in_expression", "command.glob_in_expression", "command.single_anchors"}


def ncu(arguments):
    """None where the line is taken, else what ncu says."""
    for _ in range(3):  # several ncu on one machine may find each other's port
        with tempfile.TemporaryDirectory(prefix="rangescope-fuzz-") as folder:
            done = subprocess.run([NCU, *arguments, "/bin/true"], capture_output=True, text=True, errors="replace", cwd=folder,
                                  env=dict(os.environ, TMPDIR=folder, LC_ALL="C"), stdin=subprocess.DEVNULL, timeout=600)
        said = (done.stdout + done.stderr).strip()
        if re.search("failed to connect to the CUDA driver|No (kernels|ranges) were profiled|before first instrumented", said):
            return None
        if said:
            return next((line for line in said.splitlines() if "==WARNING==" not in line), said)
    return f"nothing, exit code {done.returncode}"


def rangescope(*arguments):
    environment = dict(os.environ, RANGESCOPE_NCU=NCU)
    with tempfile.TemporaryDirectory(prefix="rangescope-fuzz-") as folder:
        return subprocess.run([f"{BIN}/rangescope", *arguments], capture_output=True, text=True, env=environment, cwd=folder,
                              stdin=subprocess.DEVNULL, timeout=300)


def shown(words):
    return [w for name, value in words for w in ([name] if value is None else [name, value])]


def judge_doctor(words, refused):
    text = shlex.join(["ncu", *shown(words), "/bin/true"])
    answer = json.loads(rangescope("doctor", "--explain", "--json", text).stdout)
    fails = [f for f in answer["findings"] if f["verdict"] == "fail"]
    certain = [f for f in fails if f["id"] not in SILENT]
    if refused and not fails:
        yield f"doctor: finds nothing wrong; ncu: {refused}"
    if not refused and certain:
        yield f"doctor: {certain[0]['id']}: {certain[0].get('found')}; ncu takes it"
    corrected = answer.get("command")
    if fails and corrected:
        still = ncu(shlex.split(corrected)[1:-1])
        if still:
            yield f"doctor corrects it to {corrected}; ncu: {still}"


def key_line(words):
    """The line as arguments of profile; None where an option has no key."""
    keys = {}
    for name, value in words:
        if name == "--nvtx":
            continue
        key = OPTIONS[name][0]
        if key is None:
            return None
        lists = key in ("sections", "metrics", "nvtx.include", "nvtx.exclude", "devices", "target_processes_filter", "range_replay_options")
        if key in keys and not lists:
            return None
        values = ["true"] if value is None else value.split(",") if lists and not key.startswith("nvtx") else [value]
        keys[key] = keys.get(key, []) + values if lists else values[0]
    keys.setdefault("replay_mode", "kernel")
    quote = lambda text: "'" + text.replace("'", "\\'") + "'"
    out = []
    for key, value in keys.items():
        bare = isinstance(value, str) and re.fullmatch(r"[a-z0-9.]+", value)
        out.append(f"pipeline.ncu.ncu_cli.{key}=" + ("[" + ",".join(map(quote, value)) + "]" if isinstance(value, list) else
                                                    value if bare else quote(value)))
    return out


def judge_planner(words, refused):
    keys = key_line(words)
    if keys is None:
        return
    done = rangescope("profile", "--dry-run", "--no-project", "--no-native", "--ncu", "--no-probe", "pipeline.ncu.top_n=0",
                      *keys, "--", "/bin/true")
    if done.returncode not in (0, 64, 78):
        yield f"planner: exit code {done.returncode}: {done.stderr.strip()}"
    if done.returncode:
        if not refused and "range expression: " not in done.stderr:  # such expressions match nothing
            yield f"planner refuses: {done.stderr.strip().splitlines()[:2]}; ncu takes it"
        return
    # Those that run the program; the others print pages of the report that it leaves.
    planned = [shlex.split(l) for l in done.stdout.splitlines() if NCU in l and " --import " not in l]
    if not planned:
        yield f"planner printed no line of ncu: {done.stdout}"
        return
    for argv in planned:
        argv = argv[next(i for i, w in enumerate(argv) if w == NCU) + 1:-1]
        for own in ("--export", "--log-file"):
            at = argv.index(own)
            del argv[at:at + 2]
        said = ncu(argv)
        if said:
            yield f"planned: {shlex.join(argv)}; ncu: {said}"


def check(words):
    refused = ncu(shown(words))
    return refused, [*judge_doctor(words, refused), *judge_planner(words, refused)]


def main():
    if not os.access(NCU, os.X_OK):
        print(f"skipped: no ncu in {TOOLS}")
        return 1 if os.environ.get("CI") else 77
    rng = random.Random(SEED)
    lines = [line(rng) for _ in range(COUNT)]
    rangescope("doctor", "--explain", "ncu --metrics dram__bytes.sum /bin/true")  # asks the tool for all it can, once
    bad = taken = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "4"))) as pool:
        for words, (refused, wrong) in zip(lines, pool.map(check, lines)):
            taken += refused is None
            bad += bool(wrong)
            for each in wrong:
                print(f"ncu {shlex.join(shown(words))}\n    {each}")
    print(f"{COUNT} lines with seed {SEED}: ncu takes {taken}, refuses {COUNT - taken}; {bad} judged otherwise")
    return bad > 0 or taken < COUNT // 5 or COUNT - taken < COUNT // 5


if __name__ == "__main__":
    sys.exit(main())
