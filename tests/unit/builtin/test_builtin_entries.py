"""MEMORY.md and USER.md as text."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Scope
from memorybus_providers.builtin.entries import (
    EntryWrite,
    apply_write,
    apply_writes,
    matched_words,
    newest_within,
    parse,
    rank,
    render,
    render_block,
)
from memorybus_providers.builtin.files import file_of, readable_files
from memorybus_providers.owners import folder_of

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


@pytest.mark.parametrize(
    ("held", "old_text", "left"),
    [(("x", "y", "x"), "x", ("y", "x")), (("tea time", "tea"), "tea", ("tea time",))],
)
def test_an_equal_entry_is_meant(held, old_text, left):
    """Of identical entries the first is taken; one that equals the old text before longer ones."""
    assert apply_write(held, EntryWrite("remove", "", old_text)) == (left, "done")


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


RANKED = [
    "The user likes green tea in the morning.",
    "The user lives in Oslo with two cats.",
    "The user works on trains; likes cats.",
]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("Where does the user live? In Oslo?", [1, 2, 0]),
        ("green TEA", [0]),
        ("Which train?", [2]),
        ("a cat", [2, 1]),
        ("What about quantum chemistry?", []),
        ("Who worked on a train?", [2]),
        ("wo wohnt der mit den Cats?", [2, 1]),
        ("what is it", [2, 1, 0]),
        ("", [2, 1, 0]),
    ],
)
def test_rank(query, order):
    """Shared terms rank, rare ones more, newer first among equals; stop words ask for all."""
    assert [i for _, i in rank(RANKED, query)] == order


def test_matched_words_are_told_as_the_entry_spells_them():
    """What an entry shares with a query is told in the entry's own words, each once."""
    assert matched_words("Two Cats, and cats of Oslo", "Has the user a cat in Oslo?") == (
        "Cats",
        "cats",
        "Oslo",
    )


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=200))
def test_rank_takes_any_text(entries, query):
    """Any query and any entries give each entry at most once, best first."""
    ranked = rank(entries, query)

    assert len({i for _, i in ranked}) == len(ranked)
    assert [score for score, _ in ranked] == sorted((s for s, _ in ranked), reverse=True)


HOSTILE = [
    "",
    ".",
    "..",
    "../../etc",
    "/root",
    "a/b",
    "a\\b",
    "a:b",
    "{a}",
    "a*",
    "a\r\nb",
    "a\x00b",
    "x" * 300,
    "x" * 301,
    "Ann",
    "ANN",
    "con",
    "con.txt",
    "LPT1",
    "ann.",
    "-rf",
    "日本",
    "日木",
    "\ud800",
    "ann~0",
]


@pytest.mark.parametrize("owner", ["ann", "default", "agent-7", "a.b_c", "0", "x" * 64])
def test_plain_names_are_their_own_folder(owner):
    """An operator finds a plain name's files by the name."""
    assert folder_of(owner) == owner


@pytest.mark.parametrize("owner", HOSTILE)
def test_hostile_names_are_plain_folders(owner):
    """No id names a path, a reserved name, or a name too long for a file system."""
    folder = folder_of(owner)

    assert Path(folder).name == folder
    assert folder.isascii()
    assert folder == folder.lower()
    assert "~" in folder
    assert len(folder) <= 80
    assert not folder.startswith(".")


@given(st.sets(st.text(max_size=80) | st.sampled_from(HOSTILE), min_size=2))
def test_different_owners_have_different_folders(owners):
    """No two ids share a folder, also on a file system that does not tell upper from lower case."""
    assert len({folder_of(owner).lower() for owner in owners}) == len(owners)


@pytest.mark.parametrize(
    ("store", "same", "other"),
    [
        ("memory", Scope(agent="a", user="z", workspace="w"), Scope(agent="b", user="u")),
        ("user", Scope(agent="z", user="u", workspace="w"), Scope(agent="a", user="v")),
    ],
)
def test_memory_follows_the_agent_and_user_the_person(store, same, other):
    """MEMORY.md is one per agent profile, USER.md one per person; neither splits by the other."""
    mine = file_of(store, Scope(agent="a", user="u"))

    assert file_of(store, same) == mine
    assert file_of(store, other) != mine


def test_nobody_in_particular_is_everyone(tmp_path):
    """None asks for every owner that has a folder; stray files are no owners."""
    for folder in ("memory/a", "memory/b", "user/u"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "memory" / "notes.txt").touch()

    assert [p.folder for p in readable_files(tmp_path, None, "u")] == ["a", "b", "u"]
    assert [p.folder for p in readable_files(tmp_path / "absent", None, None)] == []
