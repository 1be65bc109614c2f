#!/usr/bin/env python3
"""density: no room of src/ becomes denser to read than it was.

Seven measures a room (MEASURES below), tests, benchmarks and fuzzers left out, held to the limits in density.tsv. A room
fails above its limit, and also clearly below it, so that what was gained is kept: `density.py --lower` rewrites the
table with today's values and never raises one. A limit ends at the bar; a room without a row is held to the bars.

The same count of other C++ of this kind (tokens a line, ternaries per 1,000 lines): heaptrack 6.7, 2.7; ninja 7.0, 4.6;
mold 8.0, 5.9; Caliper 6.9, 5.3.

Usage: density.py [ROOT]           the check
       density.py [ROOT] --lower   rewrites density.tsv
       density.py [ROOT] --show [ROOM]   today's values; of a room also the places
"""
import collections
import json
import math
import os
import re
import shutil
import subprocess
import sys

import tree

TABLE = "tests/checks/density.tsv"
LONG = 600  # tokens of a function

# name, step that limits are rounded up to (a count has 1), what to do about it
MEASURES = (
    ("tokens_a_line", 0.1, "split statements, name conditions"),
    ("ternaries_per_1000", 1, "use an if, or a row of a table"),
    ("ternary_chains", 1, "a ternary chooses between two values"),
    ("wide_lines", 1, "100 columns"),
    ("vague_locals_percent", 0.5, "name locals after what they hold"),
    ("long_functions", 1, f"{LONG} tokens a function: one duty each"),
    ("idioms", 1, "plain English in comments"),
)
RATIOS = ("tokens_a_line", "ternaries_per_1000", "vague_locals_percent")

VAGUE = set("""at one each of whole told given seen how made from into said all more what again known by to as others taken way
fits its own here there both many that where which like with good alone even much least most asked put came so""".split())
IDIOM = re.compile(r"\b(told|tells? apart|beside|nobody|whoever|thereby|seldom|for want of|so (?:many|much|long) (?:as|of|times)|"
                   r"stands? (?:in|for|where|there)|comes? to\b|it comes|anew|in vain|by itself alone|had it|is had|be had)\b",
                   re.I)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|<<|>>|[-+*/%&|^=!<>]=|&&|\|\||[^\s\w]")
LOCAL = re.compile(r"\b(?:auto|bool|int|double|std::string|std::size_t|std::string_view|std::u?int\d+_t)\s*[&*]*\s+[&*]*"
                   r"([a-z]\w*)\s*(?:=|:|\{|;)|\bconst\s+[\w:<>]+&\s+([a-z]\w*)\s*(?::|=)")
LEFT_OUT = re.compile(r"_test\.|_bench\.|fuzz")


def without_comments(content):
    """Keeps line breaks, so that places keep their line."""
    def blank(match):
        return "\n" * match.group(0).count("\n")

    content = re.sub(r"/\*.*?\*/", blank, content, flags=re.S)
    content = re.sub(r'"(\\.|[^"\\\n])*"', '""', content)
    content = re.sub(r"'(\\.|[^'\\\n])'", "'x'", content)
    return re.sub(r"//.*", "", content)


def counts_of(path, content):
    """Counts of one file, and the places that a reader would look for: [(measure, place)]."""
    code = without_comments(content)
    tokens = TOKEN.findall(code)
    counts = collections.Counter(lines=sum(1 for line in code.split("\n") if line.strip()), tokens=len(tokens),
                                 ternaries=tokens.count("?"))
    places = []

    def found(measure, number, text):
        counts[measure] += 1
        places.append((measure, f"{path}:{number}: {text[:100]}"))

    start = 0
    for statement in re.split(r"[;{}]", code):
        if statement.count("?") >= 2:
            number = code.count("\n", 0, start + len(statement) - len(statement.lstrip())) + 1
            found("ternary_chains", number, " ".join(statement.split()))
        start += len(statement) + 1
    for number, line in enumerate(content.split("\n"), 1):
        if len(line) > 100:
            found("wide_lines", number, line.strip())
        for comment in re.findall(r"//[^\n]*", line):
            if IDIOM.search(comment):
                found("idioms", number, comment)
    uncommented = re.sub(r"//.*", "", content)
    for match in LOCAL.finditer(uncommented):
        counts["locals"] += 1
        name = match.group(1) or match.group(2)
        if name in VAGUE:
            found("vague_locals", uncommented.count("\n", 0, match.start(match.lastindex)) + 1, name)
    return counts, places


def long_functions(root, contents):
    """[(path, line, name, tokens)] by Universal Ctags."""
    listed = subprocess.run(["ctags", "-f", "-", "--output-format=json", "--fields=+ne", "--kinds-C++=f", "-L", "-"], cwd=root,
                            input="\n".join(contents), capture_output=True, text=True, check=True).stdout
    functions = []
    for tag in map(json.loads, listed.splitlines()):
        if "end" in tag:
            body = "\n".join(contents[tag["path"]].split("\n")[tag["line"] - 1:tag["end"]])
            size = len(TOKEN.findall(without_comments(body)))
            if size > LONG:
                functions.append((tag["path"], tag["line"], tag["name"], size))
    return functions


def measures_of(counts):
    """The values of MEASURES from the counts of a room."""
    values = {name: counts[name] for name, _, _ in MEASURES}
    values["tokens_a_line"] = counts["tokens"] / max(1, counts["lines"])
    values["ternaries_per_1000"] = 1000 * counts["ternaries"] / max(1, counts["lines"])
    values["vague_locals_percent"] = 100 * counts["vague_locals"] / max(1, counts["locals"])
    return values


def measure(root):
    """{room: values}, {room: places}"""
    contents = {path: tree.text(root, path) for path in tree.files(root, (".cpp", ".hpp", ".h"), under=("src",))
                if not LEFT_OUT.search(path)}
    rooms, places = collections.defaultdict(collections.Counter), collections.defaultdict(list)
    for path, content in contents.items():
        counts, found = counts_of(path, content)
        rooms[path.split("/")[1]].update(counts)
        places[path.split("/")[1]] += found
    for path, line, name, size in sorted(long_functions(root, contents), key=lambda function: -function[3]):
        rooms[path.split("/")[1]]["long_functions"] += 1
        places[path.split("/")[1]].append(("long_functions", f"{path}:{line}: {name}, {size} tokens"))
    return {room: measures_of(counts) for room, counts in rooms.items()}, places


def rounded_up(value, step):
    return round(math.ceil(round(value / step, 6)) * step, 6)


def limit_for(values, bars):
    """What a room with these values may have: rounded up, and never below the bar."""
    return {name: max(rounded_up(values[name], step), bars[name]) for name, step, _ in MEASURES}


def parsed(text):
    """(bars, {room: limits}) of the table."""
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    names = rows[0][1:]
    if names != [name for name, _, _ in MEASURES]:
        raise SystemExit(f"{TABLE}: its columns are not those of density.py")
    limits = {row[0]: dict(zip(names, map(float, row[1:]))) for row in rows[1:]}
    return limits.pop("bar"), limits


def row(room, limits):
    return "\t".join([room, *(f"{limits[name]:g}" for name, _, _ in MEASURES)])


def clearly_below(name, step, value, limit):
    """Ratios may move by two steps, counts by a twentieth, before the table has to follow."""
    slack = 2 * step if name in RATIOS else limit // 20 + 1
    return rounded_up(value, step) <= round(limit - slack, 6)


def problems_of(measured, bars, limits):
    problems = [f"{TABLE}: there is no room {room}: remove its row" for room in sorted(set(limits) - set(measured))]
    for room, values in sorted(measured.items()):
        allowed = limits.get(room, bars)
        for name, step, advice in MEASURES:
            if values[name] > allowed[name]:
                problems.append(f"src/{room}: {name} {values[name]:.5g}, limit {allowed[name]:g}: {advice} "
                                f"(density.py --show {room})")
            elif allowed[name] > bars[name] and clearly_below(name, step, max(values[name], bars[name]), allowed[name]):
                problems.append(f"src/{room}: {name} {values[name]:.5g}, limit {allowed[name]:g}: better than its limit; "
                                f"`python3 tests/checks/density.py --lower` writes\n{row(room, lower(values, bars, allowed))}")
    return problems


def lower(values, bars, allowed):
    wanted = limit_for(values, bars)
    return {name: min(wanted[name], allowed[name]) for name in wanted}


def lowered(text, measured):
    """The table's text with every limit that can go down lowered, without rooms that are gone or within the bars."""
    bars, limits = parsed(text)
    head = text[:text.index("\nbar\t")]
    lines = [head, row("bar", bars)]
    for room, allowed in sorted(limits.items()):
        lower_row = row(room, lower(measured[room], bars, allowed)) if room in measured else None
        if lower_row and lower_row != row(room, bars):
            lines.append(lower_row)
    return "\n".join(lines) + "\n"


def show(measured, places, room):
    print("room\t" + "\t".join(name for name, _, _ in MEASURES))
    for name, values in sorted(measured.items()):
        print(name + "\t" + "\t".join(f"{values[measure]:.4g}" for measure, _, _ in MEASURES))
    for measure_name, place in sorted(places.get(room, []), key=lambda item: item[0]):
        print(f"{measure_name}\t{place}")


def main(arguments):
    if not shutil.which("ctags"):
        print("ctags is missing: ./dev deps installs universal-ctags")
        return 1 if os.environ.get("CI") else 77
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if arguments and not arguments[0].startswith("--"):
        root = arguments.pop(0)
    measured, places = measure(root)
    if arguments[:1] == ["--show"]:
        show(measured, places, arguments[1] if len(arguments) > 1 else None)
        return 0
    text = tree.text(root, TABLE)
    if arguments == ["--lower"]:
        text = lowered(text, measured)
        with open(os.path.join(root, TABLE), "w", encoding="utf-8") as f:
            f.write(text)
    elif arguments:
        raise SystemExit(__doc__)
    return tree.report(problems_of(measured, *parsed(text)), f"{len(measured)} rooms within their limits")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
