"""The digests of the shipped providers: a function of the events, and of nothing else (G8)."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.providers.digested import CASES, Told, digest_after, interleaved, story_of
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_console.operations.ingest.reading.transcripts import read_transcript

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT.parent / "shared" / "data" / "locomo").glob("*.json"))


@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
@pytest.mark.slow(reason="generates histories for two real stores")
def test_a_rebuild_has_the_digest_of_the_live_state(tmp_path_factory, kind, seed):
    """G8: branches, undos, compressions: any mix of the keys, any batches, the same digest."""
    rng = random.Random(seed)
    told = story_of(rng)
    live = digest_after(kind, tmp_path_factory.mktemp("live"), interleaved(told, rng), rng)
    again = digest_after(kind, tmp_path_factory.mktemp("again"), interleaved(told, rng), rng)
    assert live == again
    assert live


@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
@pytest.mark.slow(reason="generates histories for two real stores")
def test_a_lost_event_changes_the_digest(tmp_path_factory, kind, seed):
    """G8: what was added and is still there cannot be left out unseen; its key is the one named."""
    rng = random.Random(seed)
    told = story_of(rng)
    more = Told.added(told, "a thing that nobody else says")
    live = dict(digest_after(kind, tmp_path_factory.mktemp("live"), [*told, more], rng))
    short = dict(digest_after(kind, tmp_path_factory.mktemp("short"), told, rng))
    differing = {key for key in live.keys() | short.keys() if live.get(key) != short.get(key)}
    assert len(differing) == 1


@pytest.mark.locomo
@pytest.mark.skipif(not FILES, reason="no LoCoMo conversations")
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("file", FILES[:3], ids=lambda file: file.stem)
@pytest.mark.slow(reason="whole conversations in two real stores")
def test_real_conversations_give_the_same_digest_again(tmp_path, kind, file):
    """G8: a real conversation, and what is kept of it, in another mix and other batches."""
    rng = random.Random(7)
    told = conversation(file)
    live = digest_after(kind, tmp_path / "live", told, rng, most=200)
    again = digest_after(kind, tmp_path / "again", interleaved(told, rng), rng, most=50)
    assert live == again
    assert live


def conversation(file: Path) -> Sequence[Told]:
    """Return a file's turns, and a memory write with each tenth."""
    told: list[Told] = []
    for one in read_transcript(file).conversations:
        for number, turn in enumerate(one.turns):
            said = TurnCompleted(user=turn.user, assistant=turn.assistant, ordinal=number)
            told.append(Told.of(one.session, said, len(told)))
            if number % 10 == 0 and turn.user:
                kept = MemoryWritten(action="add", store="user", content=turn.user)
                told.append(Told.of(one.session, kept, len(told)))
    return told
