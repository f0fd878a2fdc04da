"""``memorybus events search`` and ``events get`` as people run them, on a real Redis."""

import json
from typing import Any

import pytest
from helpers.stories.people import publish
from memorybus.agent.client import MemoryBus
from memorybus.archive.objects.local import LocalObjects
from memorybus.config.settings import Settings
from memorybus.errors import ArchiveUnavailable
from memorybus_console.cli import main
from memorybus_console.operations.events import search

HOSTILE = "[red]x[/red]\x1b]0;pwned\x07 <script>alert(1)</script> needle"


class Commands:
    """Runs commands in this process and reads what they say."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def json(self, *words: str, code: int = 0) -> Any:
        """Return a command's result."""
        self._capsys.readouterr()
        assert main(["events", *words, "--json"]) == code
        return json.loads(self._capsys.readouterr().out)

    def text(self, *words: str, code: int = 0) -> tuple[str, str]:
        """Return what a command says to people, and beside that."""
        self._capsys.readouterr()
        assert main(["events", *words]) == code
        said = self._capsys.readouterr()
        return said.out, said.err


@pytest.fixture(name="events")
def _events(ready: Settings, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Return the commands, on a log of two people's turns."""
    publish(ready, 8)
    return Commands(capsys)


def said(found: Any) -> list[str]:
    """Return what people said in the events of a search."""
    return [one["event"]["user"] for one in found["events"]]


def test_words_are_found_newest_first(events):
    """All words of an event count, the newest one comes first, and the end of it is told."""
    found = events.json("search", "ANN", "asks", "--limit", "50")
    assert sorted(said(found)) == [f"ann asks {turn}" for turn in range(8)]
    times = [one["position"]["entry"] for one in found["events"]]
    assert times == sorted(times, key=lambda entry: tuple(map(int, entry.split("-"))), reverse=True)
    assert found["next"] is None
    assert found["checked"] >= 16
    assert events.json("search", "nobody said this")["events"] == []
    assert said(events.json("search", "bob asks 3")) == ["bob asks 3"]


def test_pages_are_gone_on_with(events):
    """Each page says where the next one begins; together they are all, each once."""
    pages, before = [], ""
    while True:
        more = ("--before", before) if before else ()
        found = events.json("search", "asks", "--limit", "3", *more)
        pages.append(said(found))
        if not found["next"]:
            break
        before = found["next"]
    assert all(len(page) == 3 for page in pages[:5])
    flat = [text for page in pages for text in page]
    assert sorted(flat) == sorted(
        f"{who} asks {turn}" for who in ("ann", "bob") for turn in range(8)
    )


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("--user", "ann", "asks"), 8),
        (("--session", "s-bob", "asks"), 8),
        (("--session", "s-bob", "--user", "ann"), 0),
        (("--type", "turncompleted"), 16),
        (("--type", "MemoryWritten"), 0),
        (("--since", "1h", "asks"), 16),
        (("--until", "1h"), 0),
        (("--since", "2020-01-01", "--until", "2020-01-02"), 0),
    ],
)
def test_options_narrow_a_search(events, words, count):
    """Person, session, type and times are all obeyed."""
    assert len(events.json("search", *words, "--limit", "50")["events"]) == count


def test_what_is_sealed_is_found(ready, events):
    """G7: log and archive are one past: what was trimmed is found, too, and stands on pages."""
    before = events.json("search", "asks", "--limit", "50")["events"]
    assert main(["archive", "run"]) == 0
    assert events.json("search", "asks", "--limit", "50")["events"] == before
    first = events.json("search", "asks", "--limit", "7")
    rest = events.json("search", "asks", "--limit", "50", "--before", first["next"])
    assert first["events"] + rest["events"] == before


def test_a_part_that_cannot_be_read_is_told(events, monkeypatch):
    """What of the past cannot be read is named, the rest is shown, and the exit code is 1."""
    assert main(["archive", "run"]) == 0
    monkeypatch.setattr(LocalObjects, "list", broken)
    found = events.json("search", "asks", code=1)
    assert found["unread"]


def broken(*_: object) -> None:
    """Stand for a disk that does not answer."""
    raise ArchiveUnavailable("the disk is away")


def test_a_terminal_of_80_columns_is_enough(ready, events, monkeypatch):
    """Two lines for each event, the id whole, hostile text harmless, no line too long."""
    with MemoryBus.connect(ready) as bus:
        session = bus.session("s-eve" * 20, user="eve" * 30, warm=False)
        session.turn_completed(HOSTILE * 20, "ok")
        assert bus.flush("logged", 10)
    monkeypatch.setattr("memorybus_console.views.output.PIPE_WIDTH", 80)
    out, err = events.text("search", "needle")
    first, second = out.splitlines()
    assert len(first.split()[0]) == 32
    assert len(first) <= 80
    assert len(second) <= 80
    assert "\x1b" not in out
    assert "needle" in second
    assert err == ""


def test_ctrl_c_shows_what_was_found(events, monkeypatch):
    """A search that is interrupted ends with its exit code, what it found, and how to go on."""
    monkeypatch.setattr(search, "ASK_EVERY", 5)
    monkeypatch.setattr("memorybus_console.cli.events.events_search.SearchBar.show", interrupted)
    out, err = events.text("search", "asks", code=130)
    assert out
    assert "to continue, add: --before p" in err


def interrupted(*_: object) -> bool:
    """Stand for a person who presses Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("mark", ["x", "p1:1-1", "p07:1", "7:1-1"])
def test_a_mark_that_nobody_wrote_is_wrong_usage(events, mark):
    """Where to go on is said as a search says it."""
    _, err = events.text("search", "asks", "--before", mark, code=2)
    assert "is not a place to continue from" in err


def test_an_event_says_what_became_of_it(ready, events):
    """An event whose providers have no worker waits, with what is before it; it lies in the log."""
    newest, oldest = (events.json("search", "bob asks")["events"][at] for at in (0, -1))
    found = events.json("get", newest["id"])
    assert found["location"] == {"in_log": True, "sealed": False, "segment": ""}
    assert [one["instance"] for one in found["outcomes"]] == list(ready.providers)
    assert {one["outcome"] for one in found["outcomes"]} == {"waiting"}
    assert found["outcomes"][0]["before"] == newest["position"]["n"] - 1
    assert main(["archive", "run"]) == 0
    out, _ = events.text("get", oldest["id"])
    assert "sealed in segments/" in out
    assert "no worker has its lane" in out
