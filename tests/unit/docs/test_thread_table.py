"""The page of the architecture names every thread, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/architecture.md"
CODE = ("bus", "workers/memorybus_workers", "providers/memorybus_providers")
NAMED = re.compile(r'\b(?:name|thread_name_prefix|THREAD) ?= ?"(memorybus-[a-z-]+)"')


def named_threads() -> set[str]:
    """Return the names that the code gives to threads."""
    files = (path for root in CODE for path in (ROOT / root).rglob("*.py"))
    return {name for path in files for name in NAMED.findall(path.read_text())}


def documented_threads() -> set[str]:
    """Return the names of the page's table."""
    table = PAGE.read_text().split("## Processes and threads\n")[1].split("\n## ")[0]
    return set(re.findall(r"`(memorybus-[a-z-]*[a-z])`", table))


def test_the_page_has_every_thread():
    """A thread that a stack or a list of threads shows is explained on the page."""
    assert documented_threads() == named_threads()
