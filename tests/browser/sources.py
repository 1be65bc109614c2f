#!/usr/bin/env python3
"""sources: is the embedded HTML page built from the sources beside it? Usage: sources.py ROOT

The page carries the hash that web/finish.mjs put in: sha256 over "path NUL content NUL" of every source, sorted. The
check needs no npm; what it cannot see is another version of npm's packages, which package-lock.json fixes."""
import hashlib
import os
import re
import sys


def main(root):
    web = os.path.join(root, "web")
    sources = ["compare.html", "finish.mjs", "index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.js"]
    sources += ["src/" + name for name in os.listdir(os.path.join(web, "src"))]
    digest = hashlib.sha256()
    for path in sorted(sources):
        with open(os.path.join(web, path), "rb") as f:
            digest.update(path.encode() + b"\0" + f.read() + b"\0")
    template = os.path.join(root, "src/report/formats/html/template.html")
    with open(template, encoding="utf-8") as f:
        page = f.read()
    found = re.search(r'name="rangescope-sources" content="([0-9a-f]{64})"', page)
    if not found or found.group(1) != digest.hexdigest():
        print("src/report/formats/html/template.html is not built from web/ as it stands: run ./dev web and commit the result")
        return 1
    external = re.findall(r'(?:src|href)="(?!data:)[^"]*"', re.sub(r'<script[^>]*>.*?</script>', "", page, flags=re.S))
    if external:
        print(f"the page refers to other files: {external[:5]}")
        return 1
    print(f"ok: {len(page)} bytes from {len(sources)} sources")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
