"""`python -m rangescope profile train.py`: the command, for which a script of Python is run by this Python."""
from __future__ import annotations

import os
import sys

from .runs import command


def main() -> int:
    try:
        found = command()
    except FileNotFoundError as missing:
        print(f"rangescope: error: {missing}", file=sys.stderr)
        return 69
    os.environ["RANGESCOPE_PYTHON"] = sys.executable
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
