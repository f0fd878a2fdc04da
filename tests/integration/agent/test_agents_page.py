"""docs/agents.md runs, and names every public method and every public name."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memorybus
import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.stories.scenario import worker
from memorybus import MemoryBus, Session
from memorybus_console.operations.ingest.reading.transcripts import read_transcript

PAGE = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
PROVIDERS = ("builtin", "holographic")


def code_blocks(language: str = "python") -> list[str]:
    """Return the page's blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def named(*owners: str) -> set[str]:
    """Return the methods that the page's tables name of some variables."""
    return set(re.findall(rf"^\| `(?:{'|'.join(owners)})\.(\w+)", PAGE, re.MULTILINE))


def public(kind: type) -> set[str]:
    """Return the public methods and properties of a class."""
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.fixture(name="names")
def _names(
    make_settings: MakeSettings,
    redis_url: str,
    spawn: Spawn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[dict[str, Any]]:
    """Run the page in a directory whose settings name a worker's log; return its variables."""
    settings = make_settings(url=redis_url, providers=PROVIDERS)
    worker(spawn, settings, jobs=1)
    given = {"url": redis_url, "namespace": settings.namespace, "data_dir": settings.data_dir}
    lines = [f'{name} = "{value}"' for name, value in given.items()]
    lines.append(f"providers = {list(PROVIDERS)}")
    (tmp_path / "memorybus.toml").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    try:
        for block in code_blocks():
            exec(compile(block, "docs/agents.md", "exec"), found)
        yield found
    finally:
        if "bus" in found:
            found["bus"].close()


def test_the_page_runs(names):
    """Its code runs from top to bottom against a worker, and gives what the page says."""
    assert names["receipt"].level == "spooled"
    assert (names["branch"].ref.root, names["branch"].ref.parent) == ("s-1", "s-1")
    assert names["session"].ref.epoch == 2  # after the undo and the compression
    assert (names["resumed"].id, names["resumed"].ref.root) == ("s-3", "s-3")
    assert "ladder stands behind the shed" in names["answer"].text
    assert names["answer"].missing == {}
    assert "memory_search" in [schema["name"] for schema in names["offered"]]
    assert names["result"].get("ok") is not False


def test_the_page_names_every_method():
    """A method that an agent can call is in a table of the page, and no other is."""
    assert named("MemoryBus", "bus") == public(MemoryBus)
    assert named("session") == public(Session)


def test_the_page_names_every_public_name():
    """What `memorybus` exports is on the page."""
    assert [name for name in memorybus.__all__ if not re.search(rf"\b{name}\b", PAGE)] == []


def test_the_pages_file_is_read(tmp_path):
    """The page's JSONL has two conversations of one turn each, with names and times."""
    file = tmp_path / "talks.jsonl"
    file.write_text(code_blocks("jsonl")[0])

    first, second = read_transcript(file).conversations

    assert (first.session, second.session) == ("c-1", "c-2")
    assert (first.turns[0].user, first.turns[0].assistant) == (
        "Where is the ladder?",
        "Behind the shed.",
    )
    assert (first.turns[0].user_name, first.turns[0].at) == ("ann", 1_793_523_600_000)
    assert second.turns[0].assistant == "The ones at the gate."
