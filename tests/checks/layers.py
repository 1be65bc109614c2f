#!/usr/bin/env python3
"""layers: who may include whom.

The table stands once, in ARCHITECTURE.md, between the line `<!-- layers -->` and the end of the code block after it:
`room -> room room ...`, where `everything but X` and `nothing` are words of the language; `room/part -> part part ...`
says the same of the parts of a room, which may also include what lies above them; unit tests include any. Checked against it:
  - every #include "room/..." under src/, and the ROOMS of src/CMakeLists.txt;
  - strangers: sub-folders of read/, collect/ and report/formats/ never include each other (what is above may include them),
    but where a line of the table says so;
  - no `../`, and every quoted include names a room from the root;
  - libraries: only those listed below, each only in its rooms.
Usage: layers.py ROOT
"""
import re
import sys

import tree

STRANGERS = ("read", "collect", "report/formats")
# Prefix of <...> -> where it may stand. A place is a room, a folder of a room, or a file.
LIBRARIES = [
    ("yaml-cpp/", {"config"}),
    ("CLI/", {"cli/app.cpp", "cli/arguments.cpp"}),
    ("cupti", {"inject/cupti", "sample/gpu"}), ("cuda", {"inject/cupti"}), ("generated_cuda", {"inject/cupti"}),
    ("nvperf", {"inject/cupti"}), ("elfutils/", {"sample/cpu"}),
    ("nvtx3/", {"inject/nvtx", "inject/mpi", "inject/cupti"}),
    ("sqlite3.h", {"base", "read"}),
    ("re2/", {"analyze", "model", "read"}),
    ("libiberty/", {"base"}), ("protozero/", {"read", "report"}),
    ("mpi.h", {"inject", "cli/mpi"}),
    ("zstd.h", {"base", "analyze/tally", "read", "runs", "sample"}),
    ("Eigen/", {"analyze"}),
    ("fmt/", None), ("tl/", None), ("nlohmann/", None), ("gtest/", None), ("gmock/", None), ("benchmark/", None),
    ("sys/", None), ("linux/", None), ("net/", None), ("netinet/", None), ("arpa/", None), ("asm/", None),
]
REFUSED = {"regex": "std::regex backtracks without bound; use re2 or base/text",
           "iostream": "static initialisers and slow streams; use fmt and stdio"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def table(architecture):
    """{room: set of rooms} from the text of ARCHITECTURE.md."""
    match = re.search(r"<!-- layers -->\s*```[a-z]*\n(.*?)```", architecture, re.S)
    if not match:
        raise SystemExit("ARCHITECTURE.md has no table after <!-- layers -->")
    rows = {}
    for line in match.group(1).splitlines():
        if line.strip():
            room, arrow, rest = line.partition("->")
            if not arrow:
                raise SystemExit(f"ARCHITECTURE.md: not a layer: {line}")
            rows[room.strip()] = rest.strip()
    allowed = {}
    for room, rest in rows.items():
        if rest == "nothing":
            allowed[room] = set()
        elif rest.startswith("everything but "):
            allowed[room] = {other for other in rows if "/" not in other} - set(rest[len("everything but "):].split())
        else:
            allowed[room] = set(rest.split())
            above = room.rpartition("/")[0]
            unknown = {other for other in allowed[room] if (f"{above}/{other}" if above else other) not in rows}
            if unknown:
                raise SystemExit(f"ARCHITECTURE.md: {room} names rooms that do not exist: {unknown}")
    return allowed


def check_file(path, content, allowed):
    """Problems of one file under src/."""
    parts = path.split("/")
    room, sub = parts[1], parts[2] if len(parts) > 3 else None
    if room not in allowed:
        return [f"{path}: room {room} is not in the table"]
    problems = []
    for match in INCLUDE.finditer(content):
        line = content.count("\n", 0, match.start(2)) + 1
        at = f"{path}:{line}"
        target = match.group(2)
        if ".." in target.split("/"):
            problems.append(f"{at}: {target}: includes start at src/, without ../")
        elif match.group(1) == '"':
            head = target.split("/")
            if head[0] not in allowed or len(head) < 2:
                problems.append(f"{at}: {target}: quoted includes name a room of src/")
            elif head[0] != room and head[0] not in allowed[room]:
                problems.append(f"{at}: {room} may not include {head[0]} ({target})")
            elif head[0] == room:
                problems += within(at, parts[1:], head, allowed)
        elif target in REFUSED:
            problems.append(f"{at}: <{target}>: {REFUSED[target]}")
        else:
            problems += library(at, room, sub, target)
    return problems


def within(at, own, head, allowed):
    """An include of the own room: `own` and `head` are the paths of both files, as lists."""
    part = "/".join(own[:2])
    if own[-1].endswith("_test.cpp"):
        return []
    if len(own) > 2 and len(head) > 2 and head[1] != own[1] and part in allowed and head[1] not in allowed[part]:
        return [f"{at}: {part} may not include {'/'.join(head[:2])} ({'/'.join(head)})"]
    for strangers in STRANGERS:
        depth = strangers.count("/") + 1
        inside = [len(path) > depth + 1 and "/".join(path[:depth]) == strangers for path in (own, head)]
        if all(inside) and own[depth] != head[depth] and head[depth] not in allowed.get(part, ()):
            return [f"{at}: {strangers}/{own[depth]} and {strangers}/{head[depth]} are strangers ({'/'.join(head)})"]
    return []


def library(at, room, sub, target):
    for prefix, places in LIBRARIES:
        if target.startswith(prefix):
            if places is None or room in places or (sub and f"{room}/{sub}" in places) or at.split(":")[0][len("src/"):] in places:
                return []
            return [f"{at}: <{target}> belongs to {', '.join(sorted(places))} only"]
    return [f"{at}: <{target}>: not a library of this project"] if "/" in target else []


def check_cmake(content, allowed):
    """ROOMS of every rangescope_room() against the table."""
    problems = []
    for match in re.finditer(r"rangescope_room\((\w+)([^)]*)\)", content):
        rooms = re.search(r"\bROOMS((?:\s+[a-z_]+)+)", match.group(2))
        extra = (set(rooms.group(1).split()) if rooms else set()) - allowed.get(match.group(1), set())
        if extra:
            problems.append(f"src/CMakeLists.txt: {match.group(1)} may not link {' '.join(sorted(extra))}")
    return problems


def main(root):
    allowed = table(tree.text(root, "ARCHITECTURE.md"))
    paths = tree.files(root, tree.CODE, under=("src",))
    problems = check_cmake(tree.text(root, "src/CMakeLists.txt"), allowed)
    for path in paths:
        if path.count("/") < 2:
            problems.append(f"{path}: code lives in a room")
        else:
            problems += check_file(path, tree.text(root, path), allowed)
    return tree.report(problems, f"{len(paths)} files keep to the table")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
