#!/usr/bin/env python3
"""losses: every kind of loss that the sources name has a row in src/model/loss_kinds.tsv, and every row is named.

A row more rebuilds one file; a kind without a row would be "unknown_loss".
Usage: losses.py ROOT
"""
import re
import sys

import tree

TABLE = "src/model/loss_kinds.tsv"
ROW = re.compile(r'^(\w+)\t', re.M)
ID = r'"([a-z0-9]+(?:_[a-z0-9]+)+)"'
MADE = [re.compile(before + ID + r"\s*[,})]") for before in (
    r"\blose\(\s*", r"\blosses_?\.add\(\s*", r"\bLossKind\(\s*", r"\bLoss\s*(?:\w+\s*)?[({]\s*",
    r"\b(?:losses\w*|cut_)(?:\.|->)push_back\(\s*\{\s*")]


def unknown(path, content, rows):
    found = sorted((match.start(), match.group(1)) for pattern in MADE for match in pattern.finditer(content))
    return [f"{path}:{content.count(chr(10), 0, at) + 1}: {TABLE} lacks the loss {name}" for at, name in found if name not in rows]


def main(root):
    rows = ROW.findall(tree.text(root, TABLE))
    problems = [f"{TABLE}: {row} stands twice" for row in sorted(set(rows)) if rows.count(row) > 1]
    named = set()
    for path in tree.files(root, tree.CODE, ("src",)):
        if path == TABLE:
            continue
        content = tree.text(root, path)
        problems += unknown(path, content, set(rows))
        if "_test." not in path:
            named.update(re.findall(ID, content))
    problems += [f"{TABLE}: nothing names {row}" for row in rows if row not in named]
    return tree.report(problems, f"{len(rows)} kinds of losses")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
