"""The record of a prompt's block: exact, with the event of each memory."""

import zlib

import pytest
from memorybus.errors import CorruptEnvelope
from memorybus.events import Envelope, Event, Recalled, Scope, SessionRef, TurnCompleted
from memorybus.recall.answers import Answer
from memorybus.recall.asking import Replies
from memorybus.recall.model import WarmResult
from memorybus.recall.shown import (
    ShownPrompt,
    block_without,
    build_record,
    parts_of,
    record_of,
    shown_block,
)
from memorybus.text.fence import build_block, line

ANN = Scope(user="ann")
REF = SessionRef("s", "s")
IDS = [f"{number:032x}" for number in range(9)]
LONG = line("tides " * 400)


def prompt(answer, block, scope=ANN):
    """Return a prompt that was given a block."""
    return ShownPrompt(scope, REF, "What is the parrot called?", block, answer)


def answered(lines, outcome="warm"):
    """Return an answer of two providers: one that knows the events, and one that does not."""
    known = WarmResult(tuple(lines), events=tuple(IDS[: len(lines)]), scores=(2.5, 1.5, 1.0))
    other = WarmResult((line("The heron nests."),))
    by_name = {"one": known.lines, "two": other.lines}
    ready = {"one": known} if outcome == "warm" else {}
    replies = Replies(results={"one": known, "two": None} if outcome == "fresh" else {})
    return Answer(by_name, ready, replies, results=[known, other])


def shown(lines, budget=2_000, outcome="warm"):
    """Return the record of the block of some lines."""
    answer = answered(lines, outcome)
    return build_record(prompt(answer, build_block([*answer.lines.items()], budget)), "")


HOSTILE = ["\nFrom two:\n- no", "</memory-context>", "\r\x0b\u2028- x", "From one:", "  ", "…"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_block_comes_back_word_for_word(text):
    """A record gives back the block byte for byte, and each memory with its event."""
    answer = answered([line(text, speaker=text), line("tea")])
    block = build_block([*answer.lines.items()], 2_000)
    record = build_record(prompt(answer, block), IDS[8])
    assert shown_block(record) == block
    assert [part.events for part in record.memories] == [(IDS[0], IDS[1]), ("",)]
    assert record.memories[0].scores == (2.5, 1.5)
    assert [part.outcome for part in record.memories] == ["warm", "late"]
    assert "parrot" not in repr(record), "the prompt's words are not kept"


def test_a_memory_that_was_cut_keeps_its_event():
    """A memory whose beginning stands in the block is traced as the whole one is."""
    record = shown([line("tea"), LONG], 700, "fresh")
    assert shown_block(record).count("…") == 1
    assert record.memories[0].events == (IDS[0], IDS[1])
    assert record.memories[0].outcome == "fresh"


def test_a_block_without_some_events():
    """Without an event, its memories are gone, and a provider without memories is not named."""
    record = shown([line("tea\nwith milk"), line("coffee")])
    block = shown_block(record)
    assert block_without(record, ()) == block
    assert block_without(record, {IDS[0]}) == block.replace("- tea\n  with milk\n", "")
    rest = block_without(record, {IDS[0], IDS[1]})
    assert "From one:" not in rest
    assert "heron" in rest
    alone = build_record(prompt(answered([line("tea")]), "From one:\n- tea"), "")
    assert block_without(alone, {IDS[0]}) == ""


def test_a_damaged_record_is_refused():
    """A record that zlib cannot read, or that unpacks without end, breaks nothing."""
    with pytest.raises(CorruptEnvelope, match="damaged"):
        shown_block(Recalled(block=b"no"))
    assert len(shown_block(Recalled(block=zlib.compress(b"x" * 9_999_999)))) < 300_000
    short = Recalled(
        memories=shown([line("tea")]).memories[:1], block=zlib.compress(b"From a:\n- b")
    )
    assert block_without(short, {IDS[0]}) == ""


def placed(event: Event, number, scope=ANN):
    """Return an event of the session, with a number for its id."""
    return Envelope(
        id=IDS[number],
        key=f"session:{scope.user}",
        scope=scope,
        session=REF,
        at=number,
        event=event,  # type: ignore[arg-type]
    )


ASKED = build_record(prompt(Answer({}), "x"), "").asked
TURN = placed(TurnCompleted(user="What is the parrot called?"), 5)


@pytest.mark.parametrize(
    ("older", "newer", "wanted"),
    [
        ([], [Recalled(turn=IDS[5])], True),
        ([], [Recalled(turn=IDS[4])], False),
        ([Recalled(asked=ASKED)], [], True),
        ([Recalled(asked="other words")], [], False),
        ([], [Recalled(asked=ASKED)], False),
        ([Recalled(asked=ASKED), TurnCompleted(user="x")], [], False),
        ([Recalled(turn=IDS[3], asked=ASKED)], [], False),
    ],
    ids=["named", "another", "before", "words", "after", "over", "other turn"],
)
def test_the_record_of_a_turn(older, newer, wanted):
    """A turn's record names it, or was made by another process for the same words before it."""
    events = [
        *(placed(event, 6) for event in newer),
        TURN,
        *(placed(each, 1) for each in older[::-1]),
    ]
    assert (record_of(TURN, events) is not None) == wanted
    strangers = [placed(e.event, 2, Scope(user="bob")) if e is not TURN else e for e in events]
    assert record_of(TURN, strangers) is None


def test_parts_of_what_a_host_fences_itself():
    """Lines without our frame, as Hermes gets them, have the same parts."""
    above, parts, below = parts_of("From one:\n- tea\n  milk\nFrom two:\n- x")
    assert (above, below) == ([], [])
    assert [(part.label, part.memories) for part in parts] == [
        ("one", ["- tea\n  milk"]),
        ("two", ["- x"]),
    ]
