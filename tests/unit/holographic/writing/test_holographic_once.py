"""Effects happen once, in order, and only for the owner (G3, G4, G5)."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import ContextCompressing, Delegated, Event, Message, TurnCompleted
from memorybus_providers.base import Fence
from unit.holographic.holographic_feeding import (
    LANE,
    add,
    ask,
    check_index,
    context,
    feed,
    opened,
    remove,
    replace,
    stored,
    texts,
    turn,
)

EVENTS: list[Event] = [
    turn("Where is the harbour?", "Behind the mill."),
    add("The harbour opens at six"),
    replace("six", "The harbour opens at seven"),
    Delegated(task="Count the boats", result="Nine boats"),
    ContextCompressing(messages=({"role": "user", "content": "A lighthouse stands there"},)),
    add("Boats are painted in May", "user"),
    remove("painted", "user"),
    turn("Thanks", "You are welcome"),
]


@settings(max_examples=25)
@given(st.lists(st.integers(1, len(EVENTS)), max_size=4))
@pytest.mark.slow(reason="generates histories for a real store")
def test_any_batches_with_repetitions_end_in_the_same_state(cuts):
    """However history is cut into batches, each sent twice, the facts are those of one run (G4)."""
    ends = [*sorted(set(cuts)), len(EVENTS)]
    with (
        TemporaryDirectory() as once,
        TemporaryDirectory() as twice,
        opened(Path(once)) as expected,
        opened(Path(twice)) as provider,
    ):
        feed(expected, EVENTS)
        start = 0
        for end in ends:
            if start < end:
                feed(provider, EVENTS[start:end], first=start + 1)
                feed(provider, EVENTS[:end])
            start = max(start, end)

        assert stored(provider) == stored(expected)


def test_a_failed_transaction_leaves_nothing(provider):
    """A rollback takes back facts, sessions and names, also those remembered in memory (G4)."""

    def fail() -> None:
        with provider.transaction(Fence(LANE, 1)):
            provider.sync_turn(turn("Lost words", user_name="Ann"), context(1))
            provider.on_memory_write(add("Lost note"), context(2))
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError):
        fail()
    assert stored(provider) == []

    feed(provider, [turn("Found words", user_name="Ann")])
    assert texts(provider, "words from Ann") == ["Found words"]


KILLED = """
import os, signal, sys
from pathlib import Path
from unit.holographic.holographic_feeding import LANE, add, context, opened, turn
from memorybus_providers.base import Fence

with opened(Path(sys.argv[1])) as provider, provider.transaction(Fence(LANE, 1)):
    provider.sync_turn(turn("Half a batch"), context(2))
    provider.on_memory_write(add("Half a batch"), context(3))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_nothing_of_its_batch(tmp_path):
    """After SIGKILL inside a transaction the facts before it are there, and only they (G4)."""
    with opened(tmp_path) as provider:
        feed(provider, [turn("Before it")])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=False,
    )

    with opened(tmp_path) as provider:
        assert killed.returncode == -signal.SIGKILL
        assert [row[0] for row in stored(provider)] == ["Before it"]
        check_index(provider)


def test_a_hook_outside_a_transaction_commits_by_itself(tmp_path):
    """A hook called without a transaction makes its own."""
    with opened(tmp_path) as provider:
        provider.sync_turn(turn("A lone voice"), context(1))

    with opened(tmp_path) as provider:
        assert texts(provider, "voice") == ["A lone voice"]


def test_utterances_keep_the_order_of_the_log(provider):
    """Each session numbers its utterances in log order, over batches and sessions (G3)."""
    feed(provider, [turn("one", "two")], session="a")
    feed(provider, [turn("uno", "due"), turn("tre")], first=2, session="b")
    feed(provider, [turn("three", "four")], first=4, session="a")

    said = [(content, seq) for content, _, _, _, seq, *_ in stored(provider)]
    assert said == [
        ("one", 0), ("two", 1), ("uno", 0), ("due", 1), ("tre", 2), ("three", 2), ("four", 3),
    ]  # fmt: skip


def test_a_compression_brings_only_what_is_new(provider):
    """Messages that the lineage's turns have brought are not stored again; tools' output never."""
    messages: tuple[Message, ...] = (
        {"role": "system", "content": "You are helpful"},
        {"role": "user", "content": "Where is the harbour?"},
        {"role": "tool", "content": "grep output"},
        {"role": "assistant", "content": [{"type": "text", "text": "A new remark"}]},
        {"role": "assistant", "content": "A new remark"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "image_url"}, "odd"]},
    )
    feed(provider, [turn("Where is the harbour?", "Behind the mill.")], session="a")
    replies = feed(provider, [ContextCompressing(messages=messages)], first=2, session="b")

    assert replies == [""]
    assert [row[:3] for row in stored(provider)] == [
        ("Where is the harbour?", "user", "user"),
        ("Behind the mill.", "assistant", "assistant"),
        ("A new remark", "compression", "assistant"),
    ]


def test_a_turn_without_texts_is_read_from_its_messages(provider):
    """Where a turn carries messages alone, what people and agents said in them is kept."""
    messages: tuple[Message, ...] = (
        {"role": "user", "content": "Open the gate", "name": "Ann"},
        {"role": "tool", "content": "ok"},
        {"role": "assistant", "content": "It is open"},
    )
    feed(provider, [turn("", messages=messages)])

    assert [row[:3] for row in stored(provider)] == [
        ("Open the gate", "user", "Ann"),
        ("It is open", "assistant", "assistant"),
    ]


def test_a_fact_knows_where_it_comes_from(provider):
    """A recollection carries its session, time and speaker; the row its lineage and event id."""
    feed(provider, [turn("The key is under the mat", user_name="Ann")], session="s9", at=12_345)

    (found,) = ask(provider, "Where is the key?")
    row = provider.opened.db.execute(
        "select sessions.name, sessions.root, event_id from facts join sessions "
        "on sessions.id = facts.session"
    ).fetchone()

    assert (found.session, found.at, found.speaker) == ("s9", 12_345, "Ann")
    assert row == ("s9", "root", bytes.fromhex(context(1).event_id))


def test_a_delegations_result_is_found_by_its_task(provider):
    """Task and result are facts side by side, so that who asks for one finds the other."""
    result = "North line: 12, south: 9"
    feed(provider, [Delegated(task="Compare the ferry prices", result=result, child_session="c7")])

    assert set(texts(provider, "Did we compare ferry prices?")) == {
        "Compare the ferry prices",
        result,
    }
    assert set(texts(provider, "c7")) == {"Compare the ferry prices", result}


AT_ONCE = 500
BEFORE, SINGLE = 8_000, 130
"""Turns in bulk; turns one by one, twice as many as FTS5 would merge at once."""

MAX_WRITE_FACTOR = 16
"""Times as much as the median turn that the largest may write: 11 measured (SQLite 3.40), and a
margin of half. With FTS5's own merging it is 32."""

WORDS = [f"word{number}" for number in range(20_000)]


def spoken(rng: random.Random) -> TurnCompleted:
    """Return a turn whose words are mostly new."""
    return turn(" ".join(rng.sample(WORDS, 60)), "noted")


def test_no_turn_pays_for_the_merges_of_many(tmp_path):
    """A turn that is applied alone writes little, where FTS5 itself would merge what many left."""
    rng = random.Random(1)
    grown: list[int] = []
    log = tmp_path / "holographic.db-wal"
    with opened(tmp_path) as provider:
        for first in range(1, BEFORE, AT_ONCE):
            feed(provider, [spoken(rng) for _ in range(AT_ONCE)], first=first)
        with closing(sqlite3.connect(tmp_path / "holographic.db")) as reader:
            reader.execute("pragma wal_checkpoint(truncate)")
            # While somebody reads, the log does not begin anew, so that its growth can be seen.
            reader.execute("begin").execute("select count(*) from facts").fetchone()
            for number in range(BEFORE, BEFORE + SINGLE):
                before = log.stat().st_size
                feed(provider, [spoken(rng)], first=number + 1)
                grown.append(log.stat().st_size - before)
    assert max(grown) < MAX_WRITE_FACTOR * sorted(grown)[SINGLE // 2]
