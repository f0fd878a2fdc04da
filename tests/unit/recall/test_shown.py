"""The record of a prompt's block: exact, with the event of each memory."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorybus.errors import CorruptEnvelope
from memorybus.events import Envelope, Event, Recalled, Scope, SessionRef, TurnCompleted
from memorybus.recall.answers import Answer
from memorybus.recall.asking import Replies
from memorybus.recall.lines import relevant_lines, unseen_lines, window_text
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


SAID = "My sister Nora\nplays the <cello> in Graz. She is 34, and lives by the river."


@pytest.mark.parametrize(
    "known",
    [
        [{"role": "user", "content": SAID}],
        [{"role": "user", "content": [{"type": "text", "text": SAID}, {"type": "image_url"}]}],
        [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": SAID}],
        [SAID],
        SAID,
    ],
    ids=["message", "parts", "second", "text", "bare"],
)
@pytest.mark.parametrize(
    "piece",
    [
        SAID,
        "My sister Nora plays the <cello> in Graz.",
        "… plays the <cello>\n\nin Graz. …",
        "She is 34, and lives…",
    ],
)
def test_a_piece_of_a_message_in_the_window_is_no_memory(known, piece):
    """A piece is left out whatever its date, speaker, line breaks and marks of a cut."""
    told = (line(piece), line(piece, at=86_400_000, speaker="ann", before="the harp"))
    assert unseen_lines(told, window_text(known)) == ()


@pytest.mark.parametrize(
    "known",
    [
        (),
        ["Does Nora play the cello?"],
        ["My sister Nora plays the", "<cello> in Graz."],
        [{"role": "user"}, {"role": "user", "content": None}, 7],
        17,
        None,
    ],
    ids=["nothing", "else", "two halves", "no content", "number", "none"],
)
def test_what_no_message_contains_stays(known):
    """A memory stays if no single message has all of it; what is no text is passed over."""
    told = (line("My sister Nora plays the <cello> in Graz."),)
    assert unseen_lines(told, window_text(known)) == told


LINES = (
    "- [2026-03-01, Ana] We planted tomatoes behind the shed",
    "- [2026-03-02, Ana] Oskar the cat hates thunder",
    "- The invoice of the roofer is 4711",
    "- 我把钥匙放在花盆下面",
    "- Ich habe den Rasenmäher verliehen",
    "- Мы купили лодку весной",
)

CASES = [
    ("What did Ana plant behind the shed?", [0]),
    ("Is the cat afraid of thunder?", [1]),
    ("which number had the invoice, 4711?", [2]),
    ("钥匙在哪里?", [3]),
    ("Wo steht der Rasenmäher?", [4]),
    ("Где наша лодка?", [5]),
    ("Tell me what would you make with that there", []),
    ("How high is the mountain?", []),
    ("What happened in 2026, on 03-01?", []),
]


@pytest.mark.parametrize(("prompt", "expected"), CASES)
def test_only_lines_that_share_a_telling_word_are_relevant(prompt, expected):
    """A line is shown for another prompt only if a word of it, in any script, is in that prompt."""
    assert relevant_lines(LINES, prompt) == tuple(LINES[i] for i in expected)


def test_a_word_of_most_lines_tells_nothing_about_one():
    """What nearly every line says does not make one of them an answer."""
    lines = [f"- The garden of {name}" for name in ("Ana", "Benno", "Clara", "Dimitri")]
    assert relevant_lines(lines, "Whose garden is it, that of Clara?") == (lines[2],)


@given(st.lists(st.text(), max_size=6), st.text())
def test_the_relevant_lines_are_some_of_the_lines(lines, prompt):
    """Any text is a line or a prompt; the order is kept and nothing is made up."""
    rest = iter(lines)
    assert all(line in rest for line in relevant_lines(lines, prompt))
