"""Masked texts: no secret is left, and a masked copy is recognised by what is left of it."""

import json
import time

import hypothesis.strategies as st
import pytest
from hypothesis import given
from memorybus_hermes.masking import is_masked, is_masked_copy, mask_texts
from memorybus_hermes.scopes import (
    FileWrite,
    apply_write,
    find_changes,
    is_same_write,
    parse_entries,
)
from memorybus_hermes.skills import SkillsProvider
from memorybus_providers.base import ProviderConfig, RecallScope

KEY = "AbCdEfGh0123456789xyz"


def test_what_is_masked_once_is_masked_everywhere():
    """A key that a tool's arguments name is masked in prose, too, at any depth."""
    value = (f"use {KEY} please", [{"arguments": {"text": f"api_key={KEY}"}}], 7)
    shown = mask_texts(value)
    assert KEY not in repr(shown)
    assert shown[0] == "use [redacted] please"
    assert shown[2] == 7


def test_what_has_no_secret_stays_as_it_is():
    """Plain texts and inline media are unchanged."""
    value = ("the pump is in the greenhouse", {"url": f"data:image/png;base64,{KEY}"})
    assert mask_texts(value) == value


@pytest.mark.parametrize(
    ("copy", "raw"),
    [
        ("my token [redacted] for the pump", f"my token {KEY} for the pump"),
        ("password: hunter...cret", "password: hunter2-very-long-secret"),
        ("postgres://u:***@db/x  and more", "postgres://u:pw@db/x and more"),
        ("[REDACTED PRIVATE KEY] of the host", "-----BEGIN KEY\n…END----- of the host"),
        ("***", KEY),
        ("a *** b [redacted] c here", "a one b two c here"),
    ],
)
def test_a_masked_copy_is_recognised(copy, raw):
    """Whatever mask was used, what stands around it tells the copy from other texts."""
    assert is_masked(copy)
    assert is_masked_copy(copy, raw)
    assert not is_masked_copy(copy, f"{raw} and not")
    assert not is_masked_copy(raw, raw)


def test_a_text_that_is_all_mask_is_no_copy_of_prose():
    """A masked text without words of its own stands for a single word at most."""
    assert not is_masked_copy("***", "a whole sentence of somebody")
    assert not is_masked_copy("wait... what", "wait for me what")


@given(st.text(), st.text(min_size=1), st.text())
def test_any_text_with_a_part_masked_is_a_copy(before, secret, after):
    """For every place of a secret in a text of some words the copy is recognised."""
    before, after = f"the key is {before} |", f"| {after} of the house"
    assert is_masked_copy(f"{before}[redacted]{after}", f"{before}{secret.strip() or 'x'}{after}")


def test_hostile_texts_take_linear_time():
    """Many marks in a long text are compared at once, not in all combinations."""
    begun = time.perf_counter()
    is_masked_copy("a***" * 20_000 + "b", "a" * 100_000)
    mask_texts(f"api_key={KEY} " * 5_000)
    assert time.perf_counter() - begun < 5


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


@pytest.mark.parametrize(
    ("record", "job"),
    [
        ({"memorybus": {"at": "soon", "event": 3}}, {}),
        ({"memorybus": {"at": [1]}, "last_used_at": 7, "state": [], "pinned": None}, {}),
        ({"created_at": {}}, {"skill": 7, "skills": 7}),
        ({}, {"skills": {"a": 1}}),
    ],
)
def test_a_record_of_another_form_hides_no_skill(tmp_path, record, job):
    """What is of another type than Hermes writes counts as missing."""
    folder = tmp_path / "skills" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: Take notes.\n---\n")
    usage = {"notes": {"created_by": "agent", **record}}
    (tmp_path / "skills" / ".usage.json").write_text(json.dumps(usage))
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron" / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    options = {"hermes_home": str(tmp_path)}
    provider = SkillsProvider(ProviderConfig(name="skills", home=tmp_path / "x", options=options))
    (skill,) = provider.curated(RecallScope(None, None, None))
    assert (skill.name, skill.state, skill.since, skill.used) == ("skill:notes", "active", 0, 0)
