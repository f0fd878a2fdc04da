"""Hermes's memory files: what no hook told is found, once, and a torn file removes nothing."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.hermes.hermes_plugin import Host, hermes_host, talk
from memorybus.events import MemoryWritten
from memorybus.testing import FakeClock
from memorybus_hermes.plugin.provider import HermesMemory


@pytest.fixture(name="clock")
def _clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(name="host")
def _host(clock: FakeClock) -> Iterator[Host]:
    with hermes_host(clock=clock) as host:
        yield host


def age(host: Host, clock: FakeClock, name: str = "MEMORY.md", seconds: float = 60.0) -> None:
    """Make a file that was last written so many seconds ago by the test's clock."""
    at = clock.now_ms() / 1000 - seconds
    os.utime(host.home / "memories" / name, (at, at))


def put(host: Host, clock: FakeClock, *entries: str, name: str = "MEMORY.md") -> None:
    """Write a file as it was a minute ago."""
    host.write(name, *entries)
    age(host, clock, name)
    clock.sleep(1)  # so that two versions never have the same time


def boundary(memory: HermesMemory) -> None:
    """Let a turn begin."""
    memory.on_turn_start(1, "hello")


def writes(host: Host) -> list[tuple[str, str, str, str]]:
    """Return the writes that were published: action, content, old text and origin."""
    events: list[Any] = [e.event for e in host.events(MemoryWritten)]
    return [(e.action, e.content, e.old_text, e.provenance["origin"]) for e in events]


def hook(memory: HermesMemory, action: str, content: str = "", **told: str) -> None:
    """Tell of a write as Hermes's memory tool does."""
    memory.on_memory_write(action, "memory", content, {"session_id": "s1", **told})


def test_what_was_there_is_imported_once(host, clock):
    """The first look finds every entry; the next ones, also of other instances, find nothing."""
    put(host, clock, "one", "two")
    put(host, clock, "likes tea", name="USER.md")
    for _ in range(3):
        boundary(host.instance("s1"))
    assert writes(host) == [
        ("add", "one", "", "import"),
        ("add", "two", "", "import"),
        ("add", "likes tea", "", "import"),
    ]


def test_a_hand_edit_is_published_with_its_origin(host, clock):
    """Added, changed and removed entries are told as such, at the next turn's boundary."""
    put(host, clock, "one", "two", "three")
    memory = host.instance("s1")
    put(host, clock, "one", "two, changed", "three", "four")
    boundary(memory)
    put(host, clock, "two, changed", "three", "four")
    memory.sync_turn("hello", "HELLO", session_id="s1", messages=talk("hello"))
    assert writes(host)[3:] == [
        ("replace", "two, changed", "two", "file"),
        ("add", "four", "", "file"),
        ("remove", "", "one", "file"),
    ]


def test_a_hook_s_own_write_is_told_once(host, clock):
    """The file changes first, then the hook comes, then the look: one event, the hook's."""
    put(host, clock, "one")
    memory = host.instance("s1")
    put(host, clock, "one, changed", "two")
    hook(memory, "replace", "one, changed", old_text="one")
    hook(memory, "add", "two")
    boundary(memory)
    hook(memory, "remove", old_text="changed")
    put(host, clock, "two")
    boundary(memory)
    assert [told[3] for told in writes(host)] == ["import", "hermes", "hermes", "hermes"]


def test_a_look_before_the_hook_takes_its_place(host, clock):
    """Another session's turn may find the change first: then the hook adds nothing."""
    put(host, clock, "one")
    memory, other = host.instance("s1"), host.instance("s2")
    put(host, clock, "one", "two")
    boundary(other)
    hook(memory, "add", "two")
    boundary(memory)
    assert writes(host)[1:] == [("add", "two", "", "file")]
    clock.sleep(60)
    hook(memory, "add", "two")  # much later it is a call of its own
    assert len(writes(host)) == 3


def test_another_process_does_not_tell_it_again(host, clock):
    """What hooks told and looks found is noted on disk, for the next process too."""
    put(host, clock, "one")
    memory = host.instance("s1")
    put(host, clock, "one", "two")
    hook(memory, "add", "two")
    before = len(writes(host))
    host.shared._files.clear()  # as a new process begins, right after a kill
    boundary(host.instance("s1"))
    assert len(writes(host)) == before


@pytest.mark.parametrize("torn", ["", "o", "one\n§\ntw"])
def test_a_torn_file_removes_nothing(host, clock, torn):
    """An editor that truncates first: what is missing for less than ten seconds is not gone."""
    put(host, clock, "one", "two", "three", "four", "five")
    memory = host.instance("s1")
    path = host.home / "memories" / "MEMORY.md"
    path.write_text(torn)
    age(host, clock, seconds=5)
    boundary(memory)
    clock.sleep(5)
    boundary(memory)
    put(host, clock, "one", "two", "three", "four", "five", "six")
    boundary(memory)
    assert writes(host)[5:] == [("add", "six", "", "file")]


def test_a_file_just_written_may_be_half(host, clock):
    """A version counts once it is a second old."""
    put(host, clock, "one")
    memory = host.instance("s1")
    host.write("MEMORY.md", "one", "tw")
    age(host, clock, seconds=0)
    boundary(memory)
    assert len(writes(host)) == 1
    clock.sleep(1.5)
    boundary(memory)
    assert len(writes(host)) == 2


def test_a_file_that_is_gone_was_emptied(host, clock):
    """Missing for ten seconds: everything in it was removed."""
    put(host, clock, "one", "two")
    memory = host.instance("s1")
    (host.home / "memories" / "MEMORY.md").unlink()
    boundary(memory)
    assert len(writes(host)) == 2
    clock.sleep(11)
    boundary(memory)
    assert [told[:1] for told in writes(host)[2:]] == [("remove",), ("remove",)]
    put(host, clock, "one")
    boundary(memory)
    assert writes(host)[-1] == ("add", "one", "", "file")


def test_a_home_that_is_away_removes_nothing(host, clock):
    """Without the directory (a volume not mounted) nothing is believed, however long."""
    put(host, clock, "one")
    memory = host.instance("s1")
    directory = host.home / "memories"
    aside = directory.rename(host.home / "aside")
    for _ in range(3):
        clock.sleep(60)
        boundary(memory)
    aside.rename(directory)
    boundary(memory)
    assert len(writes(host)) == 1


@pytest.mark.parametrize("content", [b"\xff\xfe not text", b"x" * (1 << 20) + b"yy"])
def test_what_is_no_memory_file_is_left_alone(host, clock, content):
    """Bytes that are no text, or far too many, change nothing and stop nothing."""
    put(host, clock, "one")
    memory = host.instance("s1")
    path: Path = host.home / "memories" / "MEMORY.md"
    path.write_bytes(content)
    age(host, clock)
    boundary(memory)
    assert len(writes(host)) == 1
    assert host.shared.problems.count == 0


def test_a_full_spool_loses_no_change(clock):
    """G1: what was not accepted is found again; what was is not told twice (G2)."""
    with hermes_host(clock=clock, spool_max_bytes=3_500) as host:
        memory = host.instance("s1")
        put(host, clock, *[f"entry {number} " + "x" * 90 for number in range(20)])
        boundary(memory)
        assert host.shared.problems.count == 1
        accepted = len(writes(host))
        assert 0 < accepted < 20
        host.bus.publisher.spool._max_bytes = 1 << 20
        boundary(memory)
        assert len(writes(host)) == 20


def test_of_several_persons_nobody_is_guessed(host, clock):
    """USER.md of a gateway: with two persons a hand edit is the default user's, nobody's else."""
    put(host, clock, "likes tea", name="USER.md")
    ann = host.instance("s1", user_id="ann")
    boundary(host.instance("s2", user_id="ben"))
    put(host, clock, "likes tea", "has a cat", name="USER.md")
    boundary(ann)
    keys = [e.key for e in host.events(MemoryWritten)]
    assert keys == ["store:ann:user", "store:default:user"]


def test_damaged_notes_begin_anew(host, clock):
    """Notes that cannot be read cost a second import, under the same ids (G2), and no error."""
    put(host, clock, "one")
    host.instance("s1")
    for notes in (host.settings.data_dir / "hermes").glob("*.json"):
        notes.write_text("{")
    host.shared._files.clear()
    boundary(host.instance("s1"))
    assert writes(host) == [("add", "one", "", "import")]
    assert host.shared.problems.count == 0


def test_what_hermes_masked_stays_masked(host, clock):
    """The file has the secret that a hook masked: it is no other entry, and never published."""
    memory = host.instance("s1")
    boundary(memory)
    hook(memory, "add", "the pump's token is [redacted]")
    put(host, clock, "the pump's token is tok-live-9QxZ71bbK0")
    boundary(memory)
    hook(memory, "remove", old_text="the pump's token is [redacted]")
    put(host, clock)
    boundary(memory)
    assert writes(host) == [
        ("add", "the pump's token is [redacted]", "", "hermes"),
        ("remove", "", "the pump's token is [redacted]", "hermes"),
    ]


def test_what_a_hand_wrote_is_masked(host, clock):
    """An entry that no hook reported is published without its secret, as a change of the file."""
    memory = host.instance("s1")
    boundary(memory)
    put(host, clock, "api_key=AbCdEfGh0123456789")
    boundary(memory)
    assert writes(host) == [("add", "api_key=***", "", "file")]
