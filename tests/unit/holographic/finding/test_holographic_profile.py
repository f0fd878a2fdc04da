"""What is known of a person: instructions, what was kept, names, and what the days were about."""

from collections.abc import Sequence
from itertools import count

import pytest
from memorybus.events import Scope
from memorybus_providers.base import RecallContext, RecallScope
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import AT, DAY, ME, MINE, add, context, feed, turn

NUMBERS = count(1)


def told(
    provider: HolographicProvider,
    *texts: str,
    answer: str = "Noted.",
    day: int = 0,
    session: str = "s1",
    scope: Scope = ME,
) -> list[int]:
    """Let a person say texts in a session; return the numbers of the events."""
    numbers = [next(NUMBERS) for _ in texts]
    for number, text in zip(numbers, texts, strict=True):
        at = AT + day * DAY
        place = {"session": session, "root": session, "at": at, "scope": scope}
        feed(provider, [turn(text, answer)], first=number, **place)
    return numbers


def lines(provider: HolographicProvider, prompt: str = "", budget: int = 2_000) -> Sequence[str]:
    """Return what a prompt gets, with its label."""
    found = provider.prefetch(prompt, RecallContext(MINE, budget=budget))
    return [f"{one.speaker}: {one.text}" if one.speaker else one.text for one in found]


def prompt(provider: HolographicProvider) -> str:
    """Return what the system prompt gets."""
    return provider.system_prompt_block(RecallScope.own(ME))


def test_the_profile_has_all_its_parts(provider):
    """Instructions come first, then what was kept, the names that come up, and the newest days."""
    told(provider, "Hello!", "I am off to see Nora in Kiel. Which train is best?")
    told(provider, "Never push to main.", "My cat Rex and Nora sleep", day=1, session="s2")
    told(provider, "What is a sourdough starter?", day=2, session="s3")
    feed(provider, [add("Speaks Polish", "user")], first=next(NUMBERS), at=AT)

    assert prompt(provider).splitlines() == [
        "- [2023-11-15, standing instruction] Never push to main.",
        "- Speaks Polish",
        "- [comes up most] Nora",
        "- [2023-11-15, topic] My cat Rex and Nora sleep",
        "- [2023-11-14, topic] I am off to see Nora in Kiel.",
        "- [2023-11-16, asked about] sourdough, starter",
    ]


BOAT = ("My boat is called Petrel", "Do you know who I am?")


@pytest.mark.parametrize(
    ("question", "said", "answer", "found"),
    [
        *(
            (question, BOAT, "I know about you.", "topic: My boat is called Petrel")
            for question in (
                "What do you know about me?", "who am I", "Do you remember me?",
                "Was weißt du über mich?", "",
            )
        ),
        ("the boat", ("Where is uncle Jorge's boat?",), "", "user: Where is uncle Jorge's boat?"),
    ],
)  # fmt: skip
def test_a_question_for_what_is_known_gets_the_profile(question, said, answer, found, provider):
    """A first question gets it, not texts with its words; an open question is all that is known."""
    told(provider, *said, answer=answer)
    assert lines(provider, question) == [found]


def test_a_newer_wording_ends_an_older_one_of_the_same_subject(provider):
    """Of two orders about the same only the newer one is shown; others stay."""
    told(provider, "Call me Bob.", "Never push to main.", "Never push to production.")
    told(provider, "Call me Rob.", "Always push to main!", day=1)
    told(provider, "Call me Bob.", day=2)

    assert lines(provider) == [
        "standing instruction: Call me Bob.",
        "standing instruction: Always push to main!",
        "standing instruction: Never push to production.",
    ]
    first = provider.prefetch("", RecallContext(MINE))[0]
    assert (first.text, first.at) == ("Call me Bob.", AT + 2 * DAY)


def test_an_instruction_has_the_event_that_said_it(provider):
    """An instruction is listed as a memory of its own with its source, and taken back with it."""
    (number,) = told(provider, "Thanks. Never book aisle seats.")
    event = context(number).event_id
    listed = [one for one in provider.export(MINE) if one.text == "Never book aisle seats."]
    assert [(one.kind, one.event) for one in listed] == [("note", event)]
    kept = provider.handle_tool_call("memory_list", {"category": "instruction"}, context(900))
    assert [one["text"] for one in kept["results"]] == ["Never book aisle seats."]

    provider.retract([event], context(901, session="s1", root="s1"))

    assert prompt(provider) == ""
    assert not list(provider.export(MINE))


def test_a_corrected_instruction_is_shown_as_corrected(provider):
    """A correction replaces an instruction in the profile, and stays one."""
    told(provider, "Call me Bob.")
    correction = {"old_text": "Call me Bob.", "content": "Call me Robert."}
    provider.handle_tool_call("memory_correct", correction, context(902, at=AT + DAY))

    assert lines(provider) == ["standing instruction: Call me Robert."]


def test_only_the_person_instructs(provider):
    """What an assistant says, and turns that the host made, hold no instructions."""
    feed(provider, [turn("Which rule holds?", "Never push to main.")], first=next(NUMBERS))
    made = turn("Always run the nightly report.", "Done", synthetic=True)
    feed(provider, [made], first=next(NUMBERS))

    assert "instruction" not in prompt(provider)


def test_the_profile_is_bounded(provider):
    """G10: no part pushes out another, and a long line is cut and marked."""
    told(provider, *(f"Always water the plant number {n} of the garden." for n in range(60)))
    feed(provider, [add("word " * 900, "user")], first=next(NUMBERS))
    told(provider, "I sold the boat", day=1)

    shown = prompt(provider)
    assert len(shown) <= 1_150
    assert "…" in shown
    assert shown.endswith("I sold the boat")
    assert shown.count("standing instruction") > 3


def test_small_talk_and_answered_questions_are_no_memories(provider):
    """They stay in the store, but no block and no result of a tool has them."""
    told(provider, "hello", "ok thanks", "I see.", "好的谢谢", answer="Noted.")
    told(provider, "Where is the boat hello?", answer="The boat is in Kiel, hello.")
    stored = {one.text for one in provider.export(MINE)}
    assert {
        "hello",
        "ok thanks",
        "I see.",
        "好的谢谢",
        "Noted.",
        "Where is the boat hello?",
    } <= stored

    for asked in ("hello boat", "noted, thanks, I see", "boat", "14 November 2023"):
        found = {one.text for one in provider.prefetch(asked, RecallContext(MINE))}
        tool = provider.handle_tool_call("memory_search", {"query": asked}, context(903))
        found |= {one["text"] for one in tool["results"]}
        assert not found & {"hello", "ok thanks", "I see.", "好的谢谢", "Noted."}, asked
    assert lines(provider, "Is the boat in Kiel?") == ["assistant: The boat is in Kiel, hello."]
    assert prompt(provider) == "- [2023-11-14, asked about] boat, hello"
