#!/usr/bin/env python3
"""browser: the HTML report in a real Chromium. Usage: browser.py BIN_DIR ROOT [SHOTS]

Reports of golden captures and made ones are written and page.mjs drives a browser over them. Skipped where Chromium,
node or the npm packages of web/ are missing; in CI that is a failure."""
import os
import shutil
import subprocess
import sys
import tempfile

BIN, ROOT = sys.argv[1], os.path.abspath(sys.argv[2])
CASES = os.environ.get("RANGESCOPE_CASES")


def missing():
    if not shutil.which("node"):
        return "node is not installed"
    if not shutil.which("chromium"):
        return "chromium is not installed"
    if not os.path.isdir(os.path.join(ROOT, "web/node_modules/playwright-core")):
        return "the npm packages of web/ are not installed (./dev web)"
    return None


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
            subprocess.run([os.path.join(BIN, "rangescope"), "report", os.path.join(ROOT, f"tests/golden/nsys/{name}.sqlite"),
                            "-f", "html", "-o", os.path.join(folder, name + ".html")], check=True)
        subprocess.run([os.path.join(BIN, "make_pages"), folder, "100000", "html"], check=True)
        argv = ["node", os.path.join(ROOT, "tests/browser/page.mjs"), os.path.join(ROOT, "web/node_modules/playwright-core"),
                shutil.which("chromium"), folder, *sys.argv[3:]]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
    print(done.stdout)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("pass ", "fail "))]
    if CASES:
        with open(CASES, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
    sys.exit(1 if done.returncode or not lines else 0)


if __name__ == "__main__":
    main()
