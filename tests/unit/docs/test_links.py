"""Links between the pages lead to files and headings that exist."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)|<img src=\"([^\"]+)\"")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[str]:
    """Return the tracked pages, and those that are about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in names.splitlines() if (ROOT / name).exists()]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("name", pages())
def test_every_link_of_a_page_leads_somewhere(name):
    """A reader who follows a link between pages finds the page, the picture and the section."""
    page = ROOT / name
    for path, anchor, picture in LINK.findall(BLOCK.sub("", page.read_text())):
        target = (page.parent / (path or picture)).resolve() if path or picture else page
        assert target.exists(), f"{name} links to {path or picture}"
        assert not anchor or anchor in anchors(target), f"{name} links to {path}#{anchor}"
