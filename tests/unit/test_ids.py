"""Ids: sortable when fresh, the same for ever when derived."""

import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memorybus.ids import DIGEST_BYTES, derived_id, digest, new_id, new_rng, text_digest

PARTS = st.lists(st.text(), max_size=5).map(tuple)


def test_new_ids_are_uuids_of_version_7_in_order():
    """Fresh ids are distinct UUIDv7, 32 hex digits, and sort in the order they were made."""
    made = [new_id() for _ in range(1_000)]
    assert {(uuid.UUID(one).version, len(one)) for one in made} == {(7, 32)}
    assert made == sorted(set(made))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((), "cae66941d9ef8d408e4d88758ea67670"),
        (("turn", "s1", 0, 3, "abc"), "027d2b95a1b480748e563c4aa93bbadb"),
        (("delegation", "child é"), "ccfb9dab8f498410b66b5e0e1f9d8e44"),
        (("lone \ud800 surrogate",), "e4e299e0491f836fba6c4015b0fe5a09"),
    ],
)
def test_derived_ids_never_change(parts, expected):
    """An idempotency key has the same id on every machine and in every release (G2)."""
    assert derived_id(*parts) == expected


@given(PARTS)
def test_derived_ids_are_uuids_of_version_8(parts):
    """A derived id is a UUID whose version says that its content is ours (RFC 9562)."""
    made = uuid.UUID(derived_id(*parts))
    assert (made.version, made.variant) == (8, uuid.RFC_4122)


@given(PARTS, PARTS)
@example(("ab", "c"), ("a", "bc"))
@example(("a", ""), ("a",))
@example(("", "a"), ("a", ""))
@example(("1", "2"), ("12",))
@example((1, 23), (12, 3))
def test_different_keys_have_different_ids(one, other):
    """Where one part ends and the next begins is part of the key: no two read alike (G2)."""
    assert (derived_id(*one) == derived_id(*other)) == (one == other)


@given(st.binary())
def test_digests_are_short_and_stable(data):
    """A digest has eight bytes and depends on the data alone."""
    assert digest(data) == digest(bytes(data))
    assert len(digest(data)) == DIGEST_BYTES


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_a_digest(text):
    """Lone surrogates and NUL included; 16 hex digits, safe in a key's name."""
    assert bytes.fromhex(text_digest(text)) == digest(text.encode("utf-8", "surrogatepass"))
    assert len(text_digest(text)) == 2 * DIGEST_BYTES


def test_generators_of_chance_are_independent():
    """Two generators do not give the same jitter."""
    assert new_rng().random() != new_rng().random()
