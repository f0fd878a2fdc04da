"""The entries of memory files: what writes do to them, and what changed."""

from hypothesis import given
from hypothesis import strategies as st
from memorybus_hermes.scopes import (
    FileWrite,
    apply_write,
    find_changes,
    is_same_write,
    parse_entries,
)

ENTRIES = st.lists(st.sampled_from([f"fact {n} of it" for n in range(9)]), unique=True).map(tuple)


@given(ENTRIES, ENTRIES)
def test_the_changes_lead_from_one_to_the_other(before, now):
    """Applied one after another, the changes found give the entries that are there."""
    entries = before
    for write in find_changes(before, now, "memory"):
        entries = apply_write(entries, write)
    assert set(entries) == set(now)


@given(ENTRIES)
def test_nothing_changed_nothing_found(entries):
    """The same entries, also in another order, are no change."""
    assert find_changes(entries, entries, "user") == []
    assert find_changes(entries, entries[::-1], "user") == []


def test_an_edited_entry_was_replaced():
    """An entry in another's place is a replacement, which names the whole old entry."""
    found = find_changes(("likes tea", "has a cat"), ("likes coffee", "has a cat"), "user")
    assert found == [FileWrite("replace", "user", "likes coffee", "likes tea")]


def test_the_delimiter_is_a_line_of_its_own():
    """A section sign within an entry parts nothing; blanks and doubles go, as in Hermes."""
    assert parse_entries("see § 3\n§\n  b \n§\n\n§\nb") == ("see § 3", "b")
    assert parse_entries("a\r\n§\r\nb") == ("a", "b")


def test_a_hook_s_write_is_known_again_in_the_file():
    """A removal is known by a part of the entry, the rest by their text; stores never mix."""
    assert is_same_write(
        FileWrite("remove", "memory", "", "the whole entry"),
        FileWrite("remove", "memory", "", "whole"),
    )
    assert is_same_write(FileWrite("add", "memory", "x"), FileWrite("add", "memory", " x "))
    assert not is_same_write(FileWrite("add", "memory", "x"), FileWrite("add", "user", "x"))
    assert not is_same_write(
        FileWrite("add", "memory", "x"), FileWrite("remove", "memory", "", "x")
    )
