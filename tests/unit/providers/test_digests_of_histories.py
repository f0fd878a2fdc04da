"""The digests of the shipped providers: a function of the events, and of nothing else (G8)."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from helpers.providers.digested import CASES, Told, digest_after, interleaved, story_of
from hypothesis import given, settings
from hypothesis import strategies as st
from memorybus.events import MemoryWritten, TurnCompleted
from memorybus_console.operations.ingest.reading.transcripts import read_transcript
from memorybus_providers.base import MemoryProvider
from memorybus_workers.jobs.inspect import _pick_pairs, _text_below

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


KEYS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4) | st.text(
    "\x00ab\ue000\U0010ffff", min_size=1, max_size=4
)


class Kept:
    """A provider that has a digest, and counts what is read of it."""

    def __init__(self, state: Mapping[str, str]) -> None:
        self.read = 0
        self._state = state

    def digest(self, after: str = "") -> Iterator[tuple[str, str]]:
        """Return the pairs above a key."""
        for pair in sorted(self._state.items()):
            if pair[0] > after:
                self.read += 1
                yield pair


@given(st.dictionaries(KEYS, st.sampled_from("xyz")), st.sets(KEYS))
def test_some_keys_have_the_digests_that_they_have_among_all(state, keys):
    """G8: asked for some keys, a provider gives theirs; of one that holds nothing an empty one."""
    wanted = sorted(keys | set(list(state)[:2]))
    found = list(_pick_pairs(cast("MemoryProvider", cast("Any", Kept(state))), wanted))
    assert found == [(key, state.get(key, "")) for key in wanted]


@given(KEYS)
def test_below_a_key_lies_what_is_asked_from(key):
    """G8: what is looked from lies below the key, whatever its last sign is, and can be stored."""
    assert _text_below(key) < key
    _text_below(key).encode()


def test_keys_in_between_are_not_read():
    """One key of many that begin alike costs one pair."""
    many = Kept({f"session-{number:04}": "x" for number in range(1000)})
    assert list(_pick_pairs(cast("MemoryProvider", cast("Any", many)), ["session-0999"]))
    assert many.read == 1
