"""MEMORY.md and USER.md as text."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus_providers.builtin.entries import (
    EntryWrite,
    apply_write,
    apply_writes,
    newest_within,
    parse,
    render,
    render_block,
)

TEXTS = st.text(alphabet=st.sampled_from(f"§ \n\r\t\x0b\x1c\u2028\xa0ab{string.digits}"))
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | TEXTS
ENTRIES = ANY_TEXT.map(parse)
WRITES = st.builds(
    EntryWrite,
    action=st.sampled_from(["add", "replace", "remove"]),
    content=ANY_TEXT,
    old_text=ANY_TEXT,
)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", ()),
        (" \n\n ", ()),
        ("one", ("one",)),
        ("one\n§\ntwo", ("one", "two")),
        ("one\r\n§\r\ntwo\r\n", ("one", "two")),
        ("one\n § \t\ntwo", ("one", "two")),
        ("§\none\n§\n\n§\ntwo\n§", ("one", "two")),
        ("two\nlines\n§\n  indented", ("two\nlines", "indented")),
        ("costs 5 § a piece", ("costs 5 § a piece",)),
        ("one\n§\none", ("one", "one")),
    ],
)
def test_parse(text, entries):
    """Entries are parted by lines that hold only the sign; hands may be untidy."""
    assert parse(text) == entries


@given(ENTRIES)
def test_entries_survive_a_round_trip(entries):
    """What is written is read back as it was, whatever the text."""
    assert parse(render(entries)) == entries


HELD = ("likes tea", "likes coffee", "lives in Oslo")


@pytest.mark.parametrize(
    ("write", "entries", "outcome"),
    [
        (EntryWrite("add", " new \n", ""), (*HELD, "new"), "done"),
        (EntryWrite("add", "likes tea", ""), HELD, "duplicate"),
        (EntryWrite("add", "likes", ""), (*HELD, "likes"), "done"),
        (EntryWrite("add", "", ""), HELD, "empty"),
        (EntryWrite("add", "a\n§\nb\n§\na", ""), (*HELD, "a", "b"), "done"),
        (EntryWrite("add", "a\r\nb", ""), (*HELD, "a\nb"), "done"),
        (EntryWrite("replace", "moved", "Oslo"), ("likes tea", "likes coffee", "moved"), "done"),
        (EntryWrite("replace", "moved", " Oslo\n"), ("likes tea", "likes coffee", "moved"), "done"),
        (
            EntryWrite("replace", "a\n§\nb", "tea"),
            ("a", "b", "likes coffee", "lives in Oslo"),
            "done",
        ),
        (EntryWrite("replace", "new", "Rome"), (*HELD, "new"), "unmatched"),
        (EntryWrite("replace", "new", "likes"), (*HELD, "new"), "ambiguous"),
        (EntryWrite("replace", "likes tea", "Rome"), HELD, "unmatched"),
        (EntryWrite("replace", "new", ""), (*HELD, "new"), "unmatched"),
        (EntryWrite("replace", "", "Oslo"), HELD, "empty"),
        (EntryWrite("remove", "", "coffee"), ("likes tea", "lives in Oslo"), "done"),
        (EntryWrite("remove", "", "Rome"), HELD, "unmatched"),
        (EntryWrite("remove", "", "likes"), HELD, "ambiguous"),
        (EntryWrite("remove", "", " "), HELD, "unmatched"),
    ],
)
def test_writes(write, entries, outcome):
    """One entry is meant by a substring that no different entry contains; nothing else changes."""
    assert apply_write(HELD, write) == (entries, outcome)


def test_identical_matches_are_not_ambiguous():
    """Of identical entries the first is taken, one at a time."""
    assert apply_write(("x", "y", "x"), EntryWrite("remove", "", "x")) == (("y", "x"), "done")


def test_an_exact_match_wins_over_longer_entries():
    """An entry that equals the old text is meant, though others contain it."""
    assert apply_write(("tea time", "tea"), EntryWrite("remove", "", "tea")) == (
        ("tea time",),
        "done",
    )


@given(ENTRIES, st.lists(WRITES, max_size=8))
def test_writes_keep_the_format(entries, writes):
    """After any writes the entries still survive a round trip."""
    after, outcomes = apply_writes(entries, writes)

    assert len(outcomes) == len(writes)
    assert parse(render(after)) == after


@given(ENTRIES, WRITES)
def test_a_write_touches_one_entry_at_most(entries, write):
    """All other entries, a person's among them, keep their text and their order."""
    after, _ = apply_write(entries, write)

    untouched = [entries[:i] + entries[i + 1 :] for i in range(len(entries))] or [()]
    assert any(_is_subsequence(rest, after) for rest in untouched)


@given(ENTRIES, WRITES)
def test_what_the_agent_wrote_is_held(entries, write):
    """After an add or a replacement its content is an entry, whether or not the old one matched."""
    after, _ = apply_write(entries, write)

    if write.action != "remove":
        assert set(parse(write.content)) <= set(after)


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (0, ()),
        (2, ()),
        (3, ("ccc",)),
        (8, ("ccc",)),
        (9, ("bbb", "ccc")),
        (15, ("aaa", "bbb", "ccc")),
    ],
)
def test_the_newest_entries_fit_the_limit(limit, shown):
    """The last entries whose text, separators counted, fits are shown, in the file's order."""
    assert newest_within(("aaa", "bbb", "ccc"), limit) == shown


def test_block_names_what_is_left_out():
    """A store over its limit is shown as far as it fits, and counts the rest."""
    text = render_block("user", ("a" * 10, "b\n" * 4 + "b"), 15)
    assert text == "About the user [1 older left out]:\n- b\n  b\n  b\n  b\n  b"


def test_block_of_nothing_is_empty():
    """No entries, no block."""
    assert render_block("memory", (), 2_200) == ""


def _is_subsequence(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    rest = iter(whole)
    return all(entry in rest for entry in part)
