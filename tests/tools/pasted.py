"""Outputs as documents show them: a line `...` stands for any lines that are left out."""
import re


def is_excerpt(shown, printed):
    """Are the parts between lines `...` in `printed`, in this order? Without such a line: is it all of it?"""
    parts = re.split(r"(?m)^\.\.\.\n", shown)
    if not printed.startswith(parts[0]) or not printed.endswith(parts[-1]):
        return False
    place = len(parts[0])
    for part in parts[1:]:
        place = ("\n" + printed).find("\n" + part, place) if part else place
        if place < 0:
            return False
        place += len(part)
    return len(parts) > 1 or shown == printed
