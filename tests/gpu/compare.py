#!/usr/bin/env python3
"""Tables of what rangescope and ncu measured, from the folder that compare.sh filled.

Per kernel: matched by position within the first occurrence of the range and by name. Per range: rangescope's median over rounds and
ncu's median over its results. Ratios are rangescope / ncu; `spread` is the smallest and the largest.
"""
import csv
import json
import pathlib
import statistics
import sys


def rangescope(folder, name):
    path = folder / name / "report.json"
    return json.loads(path.read_text()) if path.exists() else None


def region(report, path):
    for one in report["regions"] if report else []:
        if one["path"] == path and one["process"] is None:
            return one
    return None


def ncu(folder, name):
    """Rows of an ncu raw page: (ranges, kernel name or '', metrics)."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.startswith('"')]
    if len(lines) < 3:
        return []
    rows = list(csv.reader(lines))
    head, out = rows[0], []
    for row in rows[2:]:
        cells = dict(zip(head, row))
        values = {}
        for key, text in cells.items():
            if "__" in key:
                try:
                    values[key] = float(text.replace(",", ""))
                except ValueError:
                    pass
        state = " ".join(text for key, text in cells.items() if "Push/Pop" in key)
        out.append((state, cells.get("Kernel Name", ""), values))
    return out


def base(name):
    """A kernel's name without return type, template arguments and parameters."""
    text, depth = "", 0
    for c in name.replace("(anonymous namespace)", ""):
        if c == "<":
            depth += 1
        elif c == ">":
            depth -= 1
        elif c == "(" and depth == 0:
            break
        elif depth == 0:
            text += c
    return text.strip().split(" ")[-1].split("::")[-1]


def value(metric, got):
    # rangescope holds shares as 0..1, ncu as percent.
    return got["value"] * 100 if ".pct" in metric and got["unit"] == "ratio" else got["value"]


def show(title, ratios, unmatched):
    print(f"-- {title}" + (f" ({unmatched} without a partner)" if unmatched else ""))
    for metric in sorted(ratios):
        r = sorted(ratios[metric])
        print(f"   {metric:62} n {len(r):3}  median {statistics.median(r):7.3f}  spread {r[0]:.3f} .. {r[-1]:.3f}")
    if not ratios:
        print("   nothing to compare")


def kernels(folder, ours, path, theirs, keep, title):
    """keep(state): is the ncu result inside the range? `theirs` begins with the first kernel of an occurrence."""
    found = region(rangescope(folder, ours), path)
    mine = {k["ordinal"]: k for k in (found or {}).get("kernels", [])}
    ratios, unmatched, large = {}, 0, []
    for ordinal, (_, name, values) in enumerate([r for r in ncu(folder, theirs) if keep(r[0])]):
        partner = mine.get(ordinal)
        if partner is None or base(partner["name"]) != base(name):
            unmatched += 1
            continue
        for metric, theirs_value in values.items():
            got = partner["metrics"].get(metric)
            if got is None or got["value"] is None:
                continue
            ours_value = value(metric, got)
            if theirs_value == 0 or ours_value == 0:
                if theirs_value != ours_value:
                    large.append((metric, ordinal, base(name), ours_value, theirs_value))
                continue
            ratio = ours_value / theirs_value
            ratios.setdefault(metric, []).append(ratio)
            if abs(ratio - 1) > 0.05:
                large.append((metric, ordinal, base(name), ours_value, theirs_value))
    show(f"{title}: {len(mine)} kernels measured", ratios, unmatched)
    for metric, ordinal, name, a, b in large[:12]:
        print(f"      {metric} of kernel {ordinal} {name}: {a:.6g} and {b:.6g}")
    if len(large) > 12:
        print(f"      ... {len(large)} differ by more than 5 %")


def ranges(folder, ours, path, theirs, keep, title):
    found = region(rangescope(folder, ours), path)
    results = [values for state, _, values in ncu(folder, theirs) if keep(state)]
    ratios = {}
    for metric, got in (found or {}).get("metrics", {}).items():
        values = [r[metric] for r in results if metric in r]
        if got["value"] is None or not values or statistics.median(values) == 0:
            continue
        ratios[metric] = [value(metric, got) / v for v in values if v]
    show(title, ratios, 0)


def truths(folder):
    report = rangescope(folder, "counted-range")
    if not report:
        return
    print("-- counted: measured and worked out from the source")
    for path, metric, truth in (("copy", "dram__bytes.sum", 2**29), ("fma", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum", 2**29)):
        got = (region(report, [path]) or {"metrics": {}})["metrics"].get(metric)
        if got and got["value"] is not None:
            print(f"   {path}: {metric} {got['value']:.9g} (min {got['min']:.9g}, max {got['max']:.9g}, rounds {got['rounds']}), truth {truth}, ratio {got['value'] / truth:.4f}")
    for name in ("counted-range", "counted-kernel", "counted-graph-kernel", "counted-seldom", "counted-relaunch", "counted-sized", "counted-flush", "work-range", "work-kernel"):
        one = rangescope(folder, name)
        if not one:
            continue
        for r in one["regions"]:
            if r["process"] is None and (r["metrics"] or r["kernels"]):
                rounds = max([m["rounds"] for m in r["metrics"].values()] or [0])
                bound, use = r["bound"] or {"kind": "-"}, r.get("utilization")
                print(f"   {name}: {' > '.join(r['path'])}: {len(r['metrics'])} metrics, {rounds} rounds, {len(r['kernels'])} kernels, bound {bound['kind']}, utilization {use and use['executed']}")
        for loss in one["losses"]:
            print(f"   {name}: loss {loss['kind']} ({loss['count']}): {loss['detail'][-300:]}")


folder = pathlib.Path(sys.argv[1])
truths(folder)
for path in ("copy", "fma", "layers"):
    kernels(folder, "counted-kernel", [path], "ncu-counted-kernel", lambda s, p=path: p in s, f"{path}, per kernel, ncu kernel replay (caches flushed)")
kernels(folder, "counted-kernel", ["layers"], "ncu-counted-keep", lambda s: "layers" in s, "layers, per kernel, ncu with --cache-control none")
kernels(folder, "counted-flush", ["layers"], "ncu-counted-kernel", lambda s: "layers" in s, "layers, per kernel, rangescope with --flush-caches")
for mode in ("range", "app-range"):
    for path in ("copy", "fma", "layers"):
        ranges(folder, "counted-range", [path], f"ncu-counted-{mode}-{path}", lambda s, p=path: p in s, f"{path}, per range, ncu {mode}")
kernels(folder, "work-kernel", ["decode"], "ncu-work-kernel", lambda s: True, "work.py decode, per kernel, ncu kernel replay")
ranges(folder, "work-range", ["decode"], "ncu-work-app-range", lambda s: True, "work.py decode, per range, ncu app-range")
