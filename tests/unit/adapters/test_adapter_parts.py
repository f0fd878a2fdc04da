"""What the adapters of other contracts are made of: options, passages, owners, calls."""

import os
import threading

import pytest
from helpers.processes.time_up import TimeUp
from memorybus.errors import Transient
from memorybus_providers.adapters.conversations import split_passages
from memorybus_providers.adapters.hermes import homes
from memorybus_providers.adapters.hermes.homes import PluginHome, SessionNotes, profile_of
from memorybus_providers.adapters.hosted import Caller, call_in_parallel, options
from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.owners import MAX_OWNERS, Owner, Owners

EVERYONE = RecallScope(None, None, None)


def test_home_in_an_option_is_the_instances_own(tmp_path):
    """``{home}`` is replaced in texts, also in tables; other braces and values stay."""
    given = {"dir": "{home}/x", "more": {"path": "{home}"}, "text": "{other}", "number": 3}

    found = options(ProviderConfig(name="n", home=tmp_path, options=given))

    assert found == {
        "dir": f"{tmp_path}/x",
        "more": {"path": str(tmp_path)},
        "text": "{other}",
        "number": 3,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n \n", []),
        ("one", ["one"]),
        ("one\nstill one\n\ntwo", ["one\nstill one", "two"]),
        ("one\r\n \r\ntwo", ["one", "two"]),
        ("one\n§\ntwo", ["one", "two"]),
        ("# Title\n\n- one\n* two", ["one", "two"]),
        ("## Title\n- one\n- two", ["one", "two"]),
        ("- one\nmore of one", ["- one\nmore of one"]),
        ("# Title", []),
        ("#hashtag", ["#hashtag"]),
    ],
)
def test_a_text_as_passages(text, expected):
    """Paragraphs and list items stand alone, headings go, nothing is joined."""
    assert split_passages(text) == expected


def test_owners_are_noted_once_and_found_by_others(tmp_path):
    """A second instance reads what the first has noted, and adds to it."""
    first, second = Owners(tmp_path), Owners(tmp_path)
    for owner in (Owner("a", "u", ""), Owner("a", "u", ""), Owner("b", "v", "")):
        first.note(owner)
    second.note(Owner("b", "v", ""))
    second.note(Owner("c", "w", ""))

    assert first.owners_in(EVERYONE) == [
        Owner("c", "w", ""),
        Owner("b", "v", ""),
        Owner("a", "u", ""),
    ]
    assert first.owners_in(RecallScope("a", None, None)) == [Owner("a", "u", "")]
    assert first.owners_in(RecallScope("x", "y")) == [Owner("x", "y", "")]


def test_no_workspace_is_a_workspace_of_its_own(tmp_path):
    """A recall without a workspace asks for none's memories; only None asks for every one's."""
    owners = Owners(tmp_path)
    kept = [Owner("a", "u", workspace) for workspace in ("", "boat", "house")]
    for owner in kept:
        owners.note(owner)
    assert owners.owners_in(RecallScope("a", "u")) == kept[:1]
    assert owners.owners_in(RecallScope("a", "u", "boat")) == kept[1:2]
    assert owners.owners_in(RecallScope("a", "u", None)) == kept[::-1]


def test_a_broken_line_costs_only_itself(tmp_path):
    """A crash in mid-write leaves the owners before and after it readable."""
    Owners(tmp_path).note(Owner("a", "u", ""))
    with (tmp_path / "owners.jsonl").open("ab") as file:
        file.write(b'\n{"agent":"b","us')

    after = Owners(tmp_path)
    after.note(Owner("c", "w", ""))

    assert after.owners_in(EVERYONE) == [Owner("c", "w", ""), Owner("a", "u", "")]


def test_a_recall_asks_a_bounded_number_of_owners(tmp_path):
    """Everyone's memories are those of the newest owners (G10)."""
    owners = Owners(tmp_path)
    for number in range(MAX_OWNERS + 5):
        owners.note(Owner("a", str(number), ""))

    asked = owners.owners_in(EVERYONE)

    assert (len(asked), asked[0].user, asked[-1].user) == (MAX_OWNERS, str(MAX_OWNERS + 4), "5")


def test_late_answers_are_time_outs():
    """Who answers in time is heard; of the others it is said that they did not."""
    go = threading.Event()
    calls = {"late": lambda: go.wait(60), "good": lambda: 1, "bad": lambda: 1 / 0}

    found = call_in_parallel(calls, 30, TimeUp(looks=3))
    go.set()

    assert found["good"] == 1
    assert isinstance(found["bad"], ZeroDivisionError)
    assert isinstance(found["late"], TimeoutError)


def test_a_late_coroutine_is_cancelled():
    """After its deadline a coroutine is cancelled, and the caller can be used again."""
    caller = Caller("test")
    begun, cancelled = threading.Event(), threading.Event()

    async def endless() -> None:
        import asyncio

        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def quick() -> int:
        return 7

    for deadline in (0.05, 2, 20):  # on a busy machine it may not even have begun by then
        if not begun.is_set():
            with pytest.raises(Transient):
                caller.call("endless", endless, deadline=deadline)

    assert cancelled.wait(20)
    assert caller.call("quick", quick, deadline=20) == 7
    caller.close()
    caller.close()


ANNA, BOB = Owner("default", "anna", ""), Owner("default", "bob", "")


def test_a_note_is_its_owners_session_s(tmp_path):
    """Two persons' sessions of one id have a note each, which another process finds."""
    kept = SessionNotes(tmp_path)
    kept.keep(ANNA, "s", {"chat_id": "1"})
    kept.keep(BOB, "s", {"chat_id": "2"})
    found = SessionNotes(tmp_path)
    assert [found.facts(one, "s") for one in (ANNA, BOB)] == [{"chat_id": "1"}, {"chat_id": "2"}]
    assert found.facts(ANNA, "other") == {}


def test_a_session_with_a_note_keeps_it(tmp_path):
    """Who resumes an older session is where that one was; a new one is where it came from."""
    kept = SessionNotes(tmp_path)
    kept.keep(ANNA, "old", {"chat_id": "1"})
    kept.keep(ANNA, "now", {"chat_id": "2"})
    kept.carry(ANNA, "now", "old")
    kept.carry(ANNA, "now", "new")
    kept.carry(ANNA, "", "nothing")
    assert [kept.facts(ANNA, one).get("chat_id") for one in ("old", "new", "nothing")] == [
        *("1", "2", None)
    ]


def test_a_note_cut_short_is_none(tmp_path):
    """What a crash has left of a note is read as no note, and written anew."""
    kept = SessionNotes(tmp_path)
    kept.keep(ANNA, "s", {"chat_id": "1"})
    (path,) = (tmp_path / "sessions").iterdir()
    path.write_bytes(b'{"chat_')
    assert kept.facts(ANNA, "s") == {}
    kept.keep(ANNA, "s", {"chat_id": "1"})
    assert kept.facts(ANNA, "s") == {"chat_id": "1"}


def test_notes_are_bounded(tmp_path, monkeypatch):
    """Beyond the bound the notes of the least used sessions go (G10)."""
    monkeypatch.setattr(homes, "MAX_NOTES", 4)
    monkeypatch.setattr(homes, "_NOTES_PER_DELETION", 2)
    kept = SessionNotes(tmp_path)
    for number in range(4):
        kept.keep(ANNA, f"s{number}", {"n": str(number)})
    for age, path in enumerate((tmp_path / "sessions").iterdir()):
        os.utime(path, (age, age))  # all long ago
    assert kept.facts(ANNA, "s0") == {"n": "0"}  # in use
    kept.keep(ANNA, "s4", {"n": "4"})
    left = [number for number in range(5) if kept.facts(ANNA, f"s{number}")]
    assert len(left) == 3
    assert {0, 4} <= set(left)


def test_an_agents_home_is_that_of_its_profile(tmp_path):
    """Another agent's HERMES_HOME is named as its profile is, another workspace's uniquely."""
    own = PluginHome(tmp_path, tmp_path / "profiles" / "coder")
    first = Owner("coder", "anna", "")
    assert profile_of(own, Owner("coder", "bob", ""), first) == own
    one, two = (profile_of(own, Owner("writer", user, ""), first) for user in ("anna", "bob"))
    assert one == two
    assert len({profile_of(own, Owner("A/..", user, ""), first) for user in ("anna", "bob")}) == 1
    assert one.home.parts[-2:] == ("profiles", "writer")
    odd = [Owner("writer", "anna", "w"), Owner("default", "anna", ""), Owner("A/..", "anna", "")]
    homes = {profile_of(own, owner, first).home for owner in (*odd, Owner("coder", "anna", "w"))}
    assert len(homes) == 4
    assert all(home.name.startswith("agent-") for home in homes)
