#!/usr/bin/env python3
"""Counts what ctest ran, case by case, and says it in one last line: `N passed, N failed, N skipped`.

A GoogleTest program counts by its own XML (cases/NAME.xml), a script by the lines it wrote (cases/NAME.txt), anything else
as one case. What was skipped is listed with its reason. A program that died counts its finished cases and one failure.
Exit code 1 on a failure, on a missing result, or where a whole build folder ran nothing. Usage: summary.py BUILD_DIR...
"""
import os
import sys
import xml.etree.ElementTree as ET

PASS, FAIL, SKIP = "pass", "fail", "skip"


def of_ctest(element):
    """The state ctest gave to one <testcase>."""
    if element.find("failure") is not None or element.get("status") == "fail":
        return FAIL
    if element.find("skipped") is not None or element.get("status") in ("notrun", "disabled"):
        return SKIP
    return PASS


def reason(skipped):
    """`: why` of a <skipped message="file:line\nwhy">, if it says so."""
    lines = skipped.get("message", "").split("\n") if skipped is not None else []
    return ": " + " ".join(line.strip() for line in lines[1:] if line.strip()) if len(lines) > 1 else ""


def of_gtest(path):
    """[(state, name)] of a GoogleTest XML file; empty when it is missing or torn."""
    try:
        tree = ET.parse(path)
    except (OSError, ET.ParseError):
        return []
    rows = []
    for case in tree.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.find("failure") is not None:
            rows.append((FAIL, name))
        elif case.get("status") == "notrun" or case.get("result") == "skipped" or case.find("skipped") is not None:
            rows.append((SKIP, name + reason(case.find("skipped"))))
        else:
            rows.append((PASS, name))
    return rows


def of_script(path):
    try:
        with open(path, encoding="utf-8") as f:
            rows = [line.rstrip("\n").partition(" ") for line in f]
    except OSError:
        return []
    return [(state, name) for state, _, name in rows if state in (PASS, FAIL, SKIP)]


def cases(build, element):
    """[(state, name)] that one ctest stands for."""
    name, state = element.get("name"), of_ctest(element)
    rows = of_gtest(f"{build}/cases/{name}.xml") or of_script(f"{build}/cases/{name}.txt")
    if not rows:
        return [(state, name)]
    rows = [(s, f"{name}: {n}") for s, n in rows]
    if state == FAIL and not any(s == FAIL for s, _ in rows):
        rows.append((FAIL, name))  # died after its last case, or ctest stopped it
    return rows


def of_run(path):
    """The <testcase> elements of a JUnit file; none when it is missing or torn."""
    try:
        return list(ET.parse(path).iter("testcase"))
    except (OSError, ET.ParseError):
        return []


def main(builds):
    rows, missing = [], []
    for build in builds:
        label = os.path.basename(os.path.normpath(build))
        elements = of_run(f"{build}/ctest.xml")
        if not elements:
            missing.append(label)
        for element in elements:
            rows += [(state, f"{label}: {name}") for state, name in cases(build, element)]
    print()
    for state in (SKIP, FAIL):
        for s, name in rows:
            if s == state:
                print(f"{'skipped' if s == SKIP else 'FAILED '}  {name}")
    for label in missing:
        print(f"FAILED   {label}: no result")
    count = {s: sum(1 for r, _ in rows if r == s) for s in (PASS, FAIL, SKIP)}
    failed = count[FAIL] + len(missing)
    print(f"{count[PASS]} passed, {failed} failed, {count[SKIP]} skipped")
    return 1 if failed or not count[PASS] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
