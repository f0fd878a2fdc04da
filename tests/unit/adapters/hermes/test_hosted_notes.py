"""What was told of sessions, noted for whoever opens them later."""

import os

from memorybus_providers.adapters.hermes import homes
from memorybus_providers.adapters.hermes.homes import PluginHome, SessionNotes, profile_of
from memorybus_providers.owners import Owner

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
