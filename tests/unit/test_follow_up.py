"""Which prompts are asked together with the one before."""

from hypothesis import given
from hypothesis import strategies as st
from memorybus.small_talk import points_back, with_topic

POINTING = (
    "and when was that?", "how much was it?", "why?", "what does she drink?", "book it", "how old?",
    "does she have a phone number?", "welche Farbe mag er denn?", "the other one",
    "who else was there?", "and where is she now?", "what did it cost",
    "und wie viel war das?", "wo wohnt sie?", "et elle habite où ?", "c'était quand ?",
    "¿y cuándo fue eso?", "e dove abita lei?", "e quanto foi isso?", "en wanneer was dat?",
)  # fmt: skip
STANDING = (
    "does it have a phone number?", "who is my doctor", "can you make it shorter?",
    "what about the dentist", "where do I live",
    "what did I do this week", "is there any milk?", "wo ist das Auto?", "où est la gare ?",
    "dónde está el coche", "what is my passport number", "我住在哪里", "dov'è lo zaino", "ok", "",
)  # fmt: skip


def test_a_prompt_without_a_subject_points_back():
    """What it is about was named before, in any of the languages that the words know."""
    assert [prompt for prompt in POINTING if not points_back(prompt)] == []


def test_a_prompt_that_names_its_subject_is_asked_alone():
    """It has two words that say something, or one and nothing that stands for another."""
    assert [prompt for prompt in STANDING if points_back(prompt)] == []


@given(st.text(), st.text())
def test_nothing_that_was_said_is_lost(prompt, topic):
    """Whatever a prompt is, it is asked whole; without a topic it is asked alone."""
    points_back(prompt)
    assert with_topic(prompt, topic).endswith(prompt)
    assert with_topic(prompt, "") == prompt
