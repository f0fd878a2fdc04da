"""A digest of some keys only: found without reading the others (G8)."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.base import MemoryProvider
from memorybus_workers.jobs.inspect import _pick_pairs, _text_below

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
