"""What a notebook shows of a run: verdict, icicle and table, as HTML without a script. Names come from the profiled program: all
text is escaped, and control and direction characters are shown as \\uNNNN."""
from __future__ import annotations

import html
import unicodedata
from typing import Any, Optional

from .runs import Comparison, Region, Run, Verdict

ROWS, BOXES, WIDTH, HEIGHT = 15, 150, 900.0, 18
COLORS = {"error": "#c0392b", "warning": "#b9770e", "note": "#566573"}


def plain(text: Any, most: int = 160) -> str:
    """Text without characters that move a cursor or turn a line around, cut to `most`."""
    said = "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else f"\\u{ord(c):04x}" for c in str(text)[:most + 1])
    return said if len(said) <= most else said[:most - 1] + "…"


def escaped(text: Any, most: int = 160) -> str:
    return html.escape(plain(text, most))


def seconds(ns: Optional[float]) -> str:
    if ns is None:
        return ""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= scale:
            return f"{ns / scale:.4g} {unit}"
    return f"{ns:.4g} ns"


def table(head: list[str], rows: list[list[str]]) -> str:
    cells = "".join("<tr>" + "".join(f"<td style='text-align:{'right' if i else 'left'}'>{cell}</td>" for i, cell in enumerate(row)) + "</tr>"
                    for row in rows)
    return f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{cells}</table>"


def icicle(regions: list[Region]) -> str:
    """Boxes as wide as their share of the wall time; those within a box never wider than it, whatever ran at once."""
    below: dict[Any, list[Region]] = {}
    for region in regions:
        below.setdefault(region["parent"], []).append(region)
    boxes: list[str] = []
    deepest = 0
    level: list[tuple[Any, float, float, float]] = [(None, 0.0, WIDTH, 0.0)]  # of a parent: its id, place, width, wall time
    for depth in range(12):
        following = []
        for parent, x, width, wall in level:
            inside = below.get(parent, [])
            whole = max(wall, sum(each.wall_ns or 0 for each in inside))
            for each in inside:
                w = width * (each.wall_ns or 0) / whole if whole > 0 else 0
                if w < 1 or len(boxes) >= BOXES:
                    continue
                name = escaped(each.path.split(" > ")[-1])
                boxes.append(f"<g><title>{escaped(each.path)}: {seconds(each.wall_ns)}</title><rect x='{x:.1f}' y='{depth * HEIGHT}' "
                             f"width='{w:.1f}' height='{HEIGHT - 1}' fill='hsl({hash_of(each.path)},55%,75%)'/>"
                             + (f"<svg x='{x:.1f}' y='{depth * HEIGHT}' width='{w - 3:.1f}' height='{HEIGHT}'><text x='3' y='13' "
                                f"font-size='11' fill='#111'>{name}</text></svg>" if w > 30 else "") + "</g>")
                following.append((each["id"], x, w, each.wall_ns or 0.0))
                deepest = depth + 1
                x += w
        level = following
    return f"<svg viewBox='0 0 {WIDTH:.0f} {deepest * HEIGHT}' width='100%' style='max-width:{WIDTH:.0f}px'>{''.join(boxes)}</svg>"


def hash_of(name: str) -> int:
    return sum(i * ord(c) for i, c in enumerate(name, 7)) % 360


def saving(line: Verdict) -> str:
    """Of a line without a cure, whose text says it already."""
    if line.saves_ns is None or line.cure:
        return ""
    return f" (saves up to {seconds(line.saves_ns)})"


def page(run: Run) -> str:
    lines = "".join(f"<li style='color:{COLORS.get(each.severity, '#111')}'><b>{escaped(each.path)}</b>{': ' if each.path else ''}"
                    f"{escaped(each.text, 400)}{escaped(saving(each))}{f'<p>Try: {escaped(each.advice, 400)}</p>' if each.advice else ''}</li>"
                    for each in run.verdict[:5])
    most = sorted(run.regions, key=lambda each: -(each.self_ns or 0))[:ROWS]
    rows = [[escaped(each.path), "-" if each.occurrences is None else str(each.occurrences), seconds(each.wall_ns),
             seconds(each.self_ns), seconds(each.median_ns), seconds(each.gpu_busy_ns), escaped(each.bound or "")] for each in most]
    more = len(run.regions) - len(most)
    shown = table(["range", "calls", "wall", "self time", "median", "GPU busy", "bound"], rows) if rows else "<p>no ranges</p>"
    losses = len(run["losses"] or [])
    return (f"<div><p><code>{escaped(run['run.id'])}</code>, {seconds(run['run.duration_ns'])}</p><ul>{lines}</ul>{icicle(run.regions)}"
            f"{shown}{f'<p>and {more} more regions</p>' if more else ''}{f'<p>{losses} data losses</p>' if losses else ''}</div>")


def changes(of: Comparison) -> str:
    found = of.changes
    rows = [[escaped(each["path"]), escaped(each["metric"]), shown(each["before"]), shown(each["after"]),
             "" if each["ratio"] is None else f"{each['ratio']:.3f}", escaped(each["standing"])] for each in found[:2 * ROWS]]
    more = len(found) - len(rows)
    return (f"<div>{table(['range', 'value', 'before', 'after', 'ratio', 'standing'], rows)}"
            f"{f'<p>and {more} more values</p>' if more else ''}</div>")


def shown(value: Any) -> str:
    return "" if value is None else f"{value:.6g}"
