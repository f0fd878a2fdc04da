"""What the window holds already is no memory."""

import pytest
from memorybus.recall.lines import unseen_lines, window_text
from memorybus.text.fence import line

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
