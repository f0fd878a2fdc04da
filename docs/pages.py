"""Write the pages that are made from the code, or check that they are current.

Each script of this folder makes one page: ``python docs/<script>.py [--check]``.
"""

import sys
from pathlib import Path


def write_or_check(page: Path, text: str) -> int:
    """Write a page; with ``--check``, only say whether it is current. Return the exit code."""
    if "--check" not in sys.argv:
        page.write_text(text)
        return 0
    if page.exists() and page.read_text() == text:
        return 0
    sys.stderr.write(f"{page.name} in {page.parent} is not current; run: make docs\n")
    return 1
