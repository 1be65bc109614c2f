#!/usr/bin/env python3
"""browser: the HTML report in a real Chromium. Usage: browser.py BIN_DIR ROOT [SHOTS]

Reports of golden captures and made ones are written and page.mjs drives a browser over them. Skipped where Chromium,
node or the npm packages of web/ are missing; in CI that is a failure. SHOTS gets pictures: `ONLY='images of the manual'`
and docs/images for SHOTS make those of the manual anew."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jobs"))
sys.dont_write_bytecode = True
import simulate  # noqa: E402

BIN, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CASES = os.environ.get("RANGESCOPE_CASES")


def missing():
    if not shutil.which("node"):
        return "node is not installed"
    if not shutil.which("chromium"):
        return "chromium is not installed"
    if not all(os.path.isdir(os.path.join(ROOT, "web/node_modules", name)) for name in ("playwright-core", "axe-core")):
        return "the npm packages of web/ are not installed (./dev web)"
    return None


def comparison(folder):
    """comparison.html: a report beside itself with slower layers, hostile names in both."""
    tool = os.path.join(BIN, "rangescope")
    done = subprocess.run([tool, "report", os.path.join(ROOT, "tests/golden/nsys/zoo.sqlite"), "-f", "json"], check=True,
                          stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout)
    paths = [os.path.join(folder, name) for name in ("before.json", "after.json")]
    for path, factor in zip(paths, (1, 1.5)):
        for region in report["regions"]:
            region["path"] = [name.replace("worker", "</script><img src=x onerror=window.hacked=1>") for name in region["path"]]
            if region["path"][-1].startswith("layer") and region["wall_ns"]["median"]:
                region["wall_ns"]["median"] *= factor
        with open(path, "w", encoding="utf-8") as f:
            json.dump(report, f)
    subprocess.run([tool, "compare", *paths, "--top", "0", "-f", "html", "-o", os.path.join(folder, "comparison.html")], check=True)


def main():
    why = missing()
    if why:
        print(f"skipped: {why}")
        if CASES:
            with open(CASES, "w", encoding="utf-8") as f:
                f.write(f"skip browser: {why}\n")
        sys.exit(1 if os.environ.get("CI") else 77)
    with tempfile.TemporaryDirectory(prefix="rangescope-browser-") as folder:
        for name in ("zoo", "work"):
            subprocess.run([os.path.join(BIN, "rangescope"), "report", f"tests/golden/nsys/{name}.sqlite",
                            "-f", "html", "-o", os.path.join(folder, name + ".html")], check=True, cwd=ROOT)  # the page shows the path
        for name, run in (("python", "native-cpu/python"), ("alone", "native-cpu/no-ranges"), ("modules", "native-gpu/modules-graph")):
            subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(ROOT, "tests/golden", run),
                            "-f", "html", "-o", os.path.join(folder, name + ".html")], check=True)
        waits = os.path.join(folder, "waits.html")  # the same program, had its waits cost most
        with open(os.path.join(folder, "alone.html"), encoding="utf-8") as page, open(waits, "w", encoding="utf-8") as changed:
            before, kind, after = page.read().partition('"kind": "own_function"')
            assert kind, "alone.html begins with a function"
            changed.write(f'{before}"kind": "own_wait"{after}')
        subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(ROOT, "tests/golden/savings/copies"), "--what-if", "copies=overlapped",
                        "--what-if", "region:loop=0.9", "-f", "html", "-o", os.path.join(folder, "what_if.html")], check=True)
        with open(os.path.join(folder, "work.txt"), "w", encoding="utf-8") as f:
            subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(ROOT, "tests/golden/nsys/work.sqlite")], check=True, stdout=f)
        subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(ROOT, "tests/golden/ncu/k_decode.ncu-repz"),
                        "-f", "html", "-o", os.path.join(folder, "ncu.html")], check=True)
        subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(ROOT, "tests/golden/memory/gpt2.trace.json.gz"),
                        "-f", "html", "-o", os.path.join(folder, "memory.html")], check=True)
        simulate.simulate(os.path.join(folder, "job"), 4, "straggler", count=8, steps=20)
        subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(folder, "job"), "-f", "html", "-o", os.path.join(folder, "job.html")], check=True)
        comparison(folder)
        slower = [os.path.join(ROOT, "tests/golden/slower", name) for name in ("before.json", "after.json")]
        subprocess.run([os.path.join(BIN, "rangescope"), "compare", *slower, "-o", os.path.join(folder, "slower.html")], check=True)
        subprocess.run([os.path.join(BIN, "make_pages"), folder, "100000", "html"], check=True)
        argv = ["node", os.path.join(ROOT, "tests/browser/page.mjs"), os.path.join(ROOT, "web/node_modules/playwright-core"),
                shutil.which("chromium"), folder, *sys.argv[3:]]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600)
    print(done.stdout)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("pass ", "fail "))]
    if CASES:
        with open(CASES, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
    sys.exit(1 if done.returncode or not lines else 0)


if __name__ == "__main__":
    main()
