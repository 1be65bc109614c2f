#!/usr/bin/env python3
"""names: no function of one file hides a function of its room.

The release build compiles eight files of a room as one. There a call in one file finds the local function of another
before the room's own of that name, without a word from the compiler: so compare once took the median of clocks.cpp,
which is the larger of two middle values. Names stand at the begin of a line, as clang-format puts them. Usage: names.py ROOT
"""
import re
import sys

import tree

SPACE = re.compile(r"namespace ((?:\w+::)*\w+)? ?\{$|\}  // namespace")
FUNCTION = re.compile(r"(?!return\b|using\b|template\b|static_assert\b)[\w\[][^=;{}()]*?[\s&*>](\w+)\(")


def functions(content):
    """(namespace, is local to the file, name, line) of the functions declared or defined at namespace level."""
    spaces = []
    for number, line in enumerate(content.split("\n"), 1):
        space = SPACE.match(line)
        if space and line.startswith("}"):
            spaces = spaces[:-1]
        elif space:
            spaces.append(space.group(1))
        elif name := FUNCTION.match(line):
            yield "::".join(s for s in spaces if s), None in spaces, name.group(1), number


def hidden(sources):
    """Problems of {path: content}, all of src."""
    declared = {}
    for path, content in sources.items():
        for space, _, name, _ in functions(content) if path.endswith(".hpp") else ():
            declared[path.split("/")[1], space, name] = path
    problems = []
    for path, content in sources.items():
        for space, local, name, line in functions(content) if path.endswith(".cpp") else ():
            if local and (of := declared.get((path.split("/")[1], space, name))):
                problems.append(f"{path}:{line}: {name} hides the one of {of} from files that are compiled with this one")
    return problems


def main(root):
    paths = [path for path in tree.files(root, (".cpp", ".hpp"), under=("src",)) if not path.endswith("_test.cpp")]
    return tree.report(hidden({path: tree.text(root, path) for path in paths}), f"{len(paths)} files hide no name")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
