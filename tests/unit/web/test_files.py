"""The files that the page sends to browsers."""

import hashlib
import re
from pathlib import Path

import memorybus_console.web
import pytest

HOME = Path(memorybus_console.web.__file__).parent
TEMPLATES = sorted((HOME / "templates").iterdir())
INLINE = re.compile(r"(?i)<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:")


def test_what_others_wrote_is_as_they_published_it():
    """Each vendored file is in the table with its hash, and nothing else is."""
    lines = (HOME / "SHA256SUMS").read_text().splitlines()
    table = {name: found for found, name in (line.split("  ") for line in lines)}
    files = {one.name: one.read_bytes() for one in (HOME / "vendor").iterdir()}
    assert table == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_nothing_inline_and_marks_nothing_safe(template):
    """Scripts and styles are files, and no text goes unescaped."""
    text = template.read_text()
    assert not INLINE.search(text)
    assert "|safe" not in text.replace(" ", "")
    assert "autoescape" not in text


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_shortened_time_keeps_its_zone(template):
    """The script reads a time's attribute; a shortened text alone would count as local time."""
    assert not re.search(r"<time>[^<]*\| *short", template.read_text())


@pytest.mark.parametrize(
    "path", [*TEMPLATES, *sorted((HOME / "static").iterdir())], ids=lambda path: path.name
)
def test_no_file_of_ours_names_another_host(path):
    """The page asks nobody but its own server."""
    hosts = re.findall(r"https?://[^\s\"')]+", path.read_text())
    assert [one for one in hosts if not one.startswith("http://www.w3.org/")] == []
