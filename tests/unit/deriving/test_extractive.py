"""The extractive deriver: chooses what a session told, names its sources, repeats nothing."""

import pytest
from memorybus_providers.contract.derivers import DUE, DeriverContract, passages
from memorybus_providers.deriving.deriver import Conclusion, KnownConclusion, Material
from memorybus_providers.deriving.extractive import (
    MAX_SENTENCES,
    SUMMARY_CHARS,
    ExtractiveDeriver,
)

BEES = "I keep bees in Bergen, and the hives stand behind the school."
HONEY = "The bees in Bergen gave forty jars of honey."
TALK = (
    ("user", "Hi there!"),
    ("assistant", "Hello! How can I help you today?"),
    ("user", BEES),
    ("assistant", "Got it."),
    ("user", HONEY),
    ("user", "What do bees eat?"),
    ("user", "Thanks!"),
)


class TestExtractive(DeriverContract):
    def make_deriver(self) -> ExtractiveDeriver:
        return ExtractiveDeriver()


def conclude(kind: str, *talk: tuple[str, str], **more: object) -> Conclusion | None:
    """Return the only conclusion of a kind."""
    material = Material(DUE, passages(*talk), **more)
    return next((one for one in ExtractiveDeriver().derive(material) if one.kind == kind), None)


def test_a_summary_has_what_was_told_in_its_order():
    """A summary has statements, verbatim and in order, without small talk and questions."""
    summary = conclude("summary", *TALK)
    assert summary.text == f"user: {BEES}\nuser: {HONEY}"


def test_a_summary_names_the_events_of_its_sentences_alone():
    """Its sources are the events whose sentences it has: if another is undone, it stays."""
    said = passages(*TALK)
    assert conclude("summary", *TALK).sources == (said[2].event, said[4].event)


@pytest.mark.parametrize("turns", [30, 300])
def test_a_long_session_has_a_short_summary(turns):
    """However long a session is, its summary has few sentences and characters."""
    talk = [
        ("user", f"On day {n} the ferry number {n * 7} left the harbour.") for n in range(turns)
    ]
    text = conclude("summary", *talk).text
    assert len(text) <= SUMMARY_CHARS
    assert len(text.splitlines()) <= MAX_SENTENCES


def test_a_summary_covers_what_was_spoken_of():
    """A second subject is in the summary, although the first takes most of the session."""
    talk = [("user", f"The bees of hive {n} in the garden are well.") for n in range(40)]
    talk.insert(20, ("user", "My daughter Nora starts school in Oslo on Monday."))
    assert "Nora" in conclude("summary", *talk).text


def test_topics_are_the_names_that_come_up():
    """A session's topics are names, those that come up most often first."""
    topic = conclude("topic", *TALK, ("user", "My friend Nora brings honey to Bergen."))
    assert topic.text == "Bergen, Nora"


def test_days_are_no_topics_and_a_name_is_one_topic():
    """Weekdays and months name no subject, and a name with an 's is the name."""
    said = "On Wednesdays in May the ferry to Hamn takes Jory and Jory's bees home."
    assert conclude("topic", ("user", said)).text == "Hamn, Jory"


def test_a_profile_has_what_is_known_of_the_person():
    """A profile has what the person told the agent to keep to, and what was kept."""
    known = passages(("standing instruction", "Never call me before nine."), ("", "Keeps bees."))
    profile = conclude("profile", *TALK, essentials=known)
    assert profile.text == "standing instruction: Never call me before nine.\nKeeps bees."
    assert profile.sources == tuple(passage.event for passage in known)


def test_a_conclusion_supersedes_the_one_that_held():
    """A new summary names the one that it replaces."""
    old = KnownConclusion("ab" * 16, "summary", "user: I keep bees.", 1, "extractive")
    assert conclude("summary", *TALK, known=(old,)).supersedes == (old.id,)


def test_what_has_not_changed_is_not_concluded_again():
    """If a session ends right after its compression, its summary is not published twice."""
    text = conclude("summary", *TALK).text
    known = (KnownConclusion("ab" * 16, "summary", text, 1, "extractive"),)
    assert conclude("summary", *TALK, known=known) is None
