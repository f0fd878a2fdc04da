"""Where a scope's files lie."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.events import Scope
from memorybus_providers.builtin.files import file_of, readable_files
from memorybus_providers.owners import folder_of

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
