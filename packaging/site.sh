#!/usr/bin/env bash
# site.sh CHECKOUT: builds build/site with MkDocs. Pages keep their places, so that links work there as in the repository. A
# link to a page, file or heading that the site lacks (links.py), and a page that the navigation forgets, end it.
set -euo pipefail
cd "${1:?usage: site.sh CHECKOUT}"
rm -rf build/site build/site-docs
mkdir -p build/site-docs
cp -r docs build/site-docs/docs
cp ./*.md build/site-docs/
mv build/site-docs/README.md build/site-docs/index.md
# Pages link to the README and to files of the repository that are no pages.
python3 - build/site-docs <<'E2'
import os, pathlib, re, sys
root = pathlib.Path(sys.argv[1])
for page in root.rglob("*.md"):
    def to(match):
        words, (target, _, anchor) = match.group(1), match.group(2).partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match.group(0)
        at = pathlib.Path(os.path.normpath(page.parent / target))
        if at == root / "README.md":
            return f"[{words}]({os.path.relpath(root / 'index.md', page.parent)}{'#' + anchor if anchor else ''})"
        original = pathlib.Path(os.path.normpath(page.relative_to(root).parent / target))
        return words if not at.is_file() and original.exists() else match.group(0)  # what is no page is named, not linked
    text = page.read_text()
    changed = re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", to, text)
    if changed != text:
        page.write_text(changed)
E2
forgotten=$(cd build/site-docs && find . -name '*.md' ! -name index.md | cut -c3- | while read -r page; do
  grep -qF "$page" ../../mkdocs.yml || printf '%s ' "$page"; done)
[[ -z $forgotten ]] || { printf 'site: error: the navigation of mkdocs.yml forgets: %s\n' "$forgotten" >&2; exit 1; }
mkdocs build --quiet --strict
python3 packaging/links.py build/site
