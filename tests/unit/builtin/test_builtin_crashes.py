"""Killed at any point between commit and file, nothing is doubled and nothing lost (G4)."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import builtin_feeding
import msgspec
import pytest
from builtin_feeding import (
    LANE,
    add,
    feed,
    memory_file,
    provider_at,
    remove,
    replace,
    user_file,
)
from helpers.processes.processes import Spawn
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import MemoryWritten
from memorybus_providers.builtin.entries import EntryWrite, apply_writes, parse, render

BEFORE = [add("x"), add("tea"), add("kind", "user"), add("kind of", "user")]
WRITES = [remove("x"), replace("tea", "tea tea"), remove("kind of", "user"), add("calm", "user")]
"""Applied twice they would remove a second ``x`` (made by hand below) and a second ``kind``."""

POINTS = ["builtin.before_commit", "builtin.after_commit", "builtin.after_file:1"]
POINTS += ["builtin.after_file:2"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with some entries, one of them doubled by hand."""
    home = tmp_path / "home"
    provider = provider_at(home)
    provider.open()
    feed(provider, *BEFORE)
    provider.shutdown()
    memory_file(home).write_text("x\n§\nx\n§\ntea")
    return home


def killed_at(spawn: Spawn, home: Path, point: str) -> None:
    """Run a worker that is killed at `point` while it applies `WRITES`."""
    events = msgspec.json.encode(WRITES).decode()
    child = spawn(Path(builtin_feeding.__file__), home, point, "5", events)
    assert child.wait() == -9, child.output()


def applied_n(home: Path) -> int:
    """Open the home (which repairs it) and return the lane's progress."""
    provider = provider_at(home)
    provider.open()
    progress = provider.progress(LANE)
    provider.shutdown()
    assert progress is not None
    return progress.n


def again(home: Path) -> None:
    """Feed the same events again, as the lane of a new owner does."""
    provider = provider_at(home)
    provider.open()
    feed(provider, *WRITES, first=5, epoch=2)
    provider.shutdown()


@pytest.mark.fault
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_doubles_nothing_and_loses_nothing(spawn, home, point):
    """After a kill, opening repairs what was committed, and a replay changes nothing more (G4)."""
    killed_at(spawn, home, point)

    assert applied_n(home) == (4 if point == "builtin.before_commit" else 8)
    if point != "builtin.before_commit":
        assert memory_file(home).read_text() == "x\n§\ntea tea"
    again(home)
    assert memory_file(home).read_text() == "x\n§\ntea tea"
    assert user_file(home).read_text() == "kind\n§\ncalm"
    assert not list(home.rglob("*.next"))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("point", "edited", "memory"),
    [
        ("before_commit", "mine\n§\nx\n§\nx\n§\ntea", "mine\n§\nx\n§\ntea tea"),
        ("after_commit", "mine\n§\nx\n§\nx\n§\ntea", "mine\n§\nx\n§\ntea tea"),
        ("after_file:2", "x\n§\nnothing but x", "x\n§\nnothing but x"),
    ],
)
def test_an_edit_after_a_kill_stays(spawn, home, point, edited, memory):
    """Writes that wait for their file are applied to what a person made of it; others never."""
    killed_at(spawn, home, f"builtin.{point}")
    memory_file(home).write_text(edited)

    again(home)

    assert memory_file(home).read_text() == memory


@pytest.mark.fault
def test_a_crash_at_the_very_first_write_is_repaired(spawn, tmp_path):
    """Folders that do not exist yet are no special case."""
    home = tmp_path / "fresh"
    events = msgspec.json.encode([add("one"), add("two", "user")]).decode()
    child = spawn(Path(builtin_feeding.__file__), home, "builtin.after_commit", "1", events)
    assert child.wait() == -9, child.output()
    assert not memory_file(home).exists()

    assert applied_n(home) == 2
    assert (memory_file(home).read_text(), user_file(home).read_text()) == ("one", "two")


class Died(BaseException):
    """Stands for a process that ends at a crash point."""


class Step(msgspec.Struct, frozen=True):
    """A batch, the place where its worker dies (the second one succeeds), an edit after it."""

    writes: tuple[MemoryWritten, ...]
    dies_at: str
    edit: str


_WORDS = st.sampled_from(["a", "a b", "b", "b c", "c", "a c"])
_EVENTS = st.one_of(
    st.builds(add, _WORDS), st.builds(replace, _WORDS, _WORDS), st.builds(remove, _WORDS)
)
_STEPS = st.builds(
    Step,
    writes=st.lists(_EVENTS, min_size=1, max_size=4).map(tuple),
    dies_at=st.sampled_from(["", "before_commit", "after_commit", "after_file"]),
    edit=st.sampled_from(["", "reverse", "double", "drop", "new"]),
)
_EDITS = {
    "": lambda entries: entries,
    "reverse": lambda entries: entries[::-1],
    "double": lambda entries: entries + entries[:1],
    "drop": lambda entries: entries[1:],
    "new": lambda entries: ("by hand", *entries),
}


@settings(max_examples=50)
@given(st.lists(_STEPS, max_size=6))
@pytest.mark.slow(reason="generates histories with crashes")
def test_any_history_of_crashes_and_edits_applies_each_write_once(steps):
    """Whatever dies where and whoever edits when: each batch once, each edit kept (G4)."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        first = 1
        for step in steps:
            _live_through(home, step, first)
            first += len(step.writes)
        applied_n_or_nothing(home)
        text = memory_file(home).read_text() if memory_file(home).exists() else ""

    assert parse(text) == _expected(steps)


def _live_through(home: Path, step: Step, first: int) -> None:
    if step.dies_at:
        _attempt(home, step, first, dies=True)
        _edit(home, step.edit)
        _attempt(home, step, first, dies=False)
    else:
        _attempt(home, step, first, dies=False)
        _edit(home, step.edit)


def _attempt(home: Path, step: Step, first: int, *, dies: bool) -> None:
    def crash(name: str) -> None:
        if dies and name == f"builtin.{step.dies_at}":
            raise Died

    provider = provider_at(home, crash)
    provider.open()
    try:
        feed(provider, *step.writes, first=first)
    except Died:
        assert dies
    finally:
        provider.shutdown()


def _edit(home: Path, edit: str) -> None:
    file = memory_file(home)
    if edit and file.exists():
        file.write_text(render(_EDITS[edit](parse(file.read_text()))))


def _expected(steps: Sequence[Step]) -> tuple[str, ...]:
    """Apply batches and edits in the order in which they took effect, without any crash."""
    entries: tuple[str, ...] = ()
    exists = False
    for step in steps:
        writes = [EntryWrite(e.action, e.content, e.old_text) for e in step.writes]
        edited_first = step.dies_at in ("before_commit", "after_commit")
        if edited_first and exists:
            entries = _EDITS[step.edit](entries)
        before = entries
        entries = apply_writes(entries, writes)[0]
        exists = exists or entries != before
        if not edited_first and exists:
            entries = _EDITS[step.edit](entries)
    return entries


def applied_n_or_nothing(home: Path) -> None:
    """Open and close the home, which repairs it."""
    provider = provider_at(home)
    provider.open()
    provider.shutdown()
