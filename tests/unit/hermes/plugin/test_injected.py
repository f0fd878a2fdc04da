"""What recall a window holds already: nothing is said twice in it."""

import pytest
from memorybus.text.fence import line
from memorybus_hermes.plugin.injected import (
    MAX_ITEMS,
    MAX_SESSIONS,
    InjectedRecall,
    fenced_items,
)

A, B = line("likes tea"), line("a note\nof two lines", at=86_400_000)


def fenced(text: str) -> dict[str, str]:
    """Return a message as Hermes keeps it once recall was injected into it."""
    note = "[System note: The following is recalled memory context, NOT new user input.]"
    sent = f"hi\n\n<memory-context>\n{note}\n\n{text}\n</memory-context>"
    return {"role": "user", "content": "hi", "api_content": sent}


def test_an_item_is_said_once():
    """What was injected stands in the window; only what is new is added."""
    injected = InjectedRecall()
    assert injected.take("s", [("holo", [A])], 800) == f"From holo:\n{A}"
    assert injected.take("s", [("holo", [A, B])], 800) == f"From holo:\n{B}"
    assert injected.take("s", [("holo", [A, B])], 800) == ""
    assert injected.take("other", [("holo", [A])], 800) != ""


def test_two_providers_with_the_same_item_say_it_once():
    """The first of them in order has it."""
    text = InjectedRecall().take("s", [("one", [A]), ("two", [A, B])], 800)
    assert text == f"From one:\n{A}\nFrom two:\n{B}"


def test_what_does_not_fit_comes_at_another_turn():
    """The budget holds, and what it left out is not taken for injected."""
    injected = InjectedRecall()
    room = len(A) + 20
    assert injected.take("s", [("holo", [A, B])], room) == f"From holo:\n{A}"
    assert injected.take("s", [("holo", [A, B])], 800) == f"From holo:\n{B}"


def test_the_transcript_says_what_the_window_holds():
    """After a turn the window is read: what a compression took out may be said again."""
    injected = InjectedRecall()
    injected.take("s", [("holo", [A, B])], 800)
    injected.note_window("s", [fenced(f"From holo:\n{B}")])
    assert injected.take("s", [("holo", [A, B])], 800) == f"From holo:\n{A}"


def test_what_was_said_in_the_window_is_not_recalled_into_it():
    """The window's own messages need no recall, until a compression takes them out."""
    injected = InjectedRecall()
    said = line("where is\nthe <harbour>?", at=86_400_000, speaker="user")
    injected.note_window("s", [{"role": "user", "content": "where is\nthe <harbour>?"}])
    assert injected.take("s", [("holo", [said, A])], 800) == f"From holo:\n{A}"
    injected.note_window("s", [{"role": "user", "content": "a summary"}])
    assert injected.take("s", [("holo", [said])], 800) == f"From holo:\n{said}"


class Counted(dict[str, str]):
    """A message that counts how often it is read."""

    reads = 0

    def get(self, key: str, default: object = None) -> object:
        """Count."""
        self.reads += 1
        return super().get(key, default)


def test_a_long_session_costs_no_more_than_a_short_one():
    """Messages that were read before are not read again, unless the window was cut."""
    injected = InjectedRecall()
    messages = [Counted(role="user", content=f"word {n}") for n in range(1_000)]
    injected.note_window("s", messages)
    before = [message.reads for message in messages[:-1]]
    injected.note_window("s", [*messages, Counted(role="user", content="one more")])
    assert [message.reads for message in messages[:-1]] == before
    said = line("word 7")
    assert injected.take("s", [("holo", [said])], 800) == ""
    injected.note_window("s", messages[500:])
    assert injected.take("s", [("holo", [said])], 800) != ""


def test_items_are_read_back_from_the_fence():
    """Items of several lines come back whole, and nothing outside the fence is one."""
    assert list(fenced_items(fenced(f"From holo:\n{A}\n{B}"))) == [A, B]
    assert list(fenced_items({"role": "user", "api_content": "- no item"})) == []


@pytest.mark.parametrize("message", [{}, {"api_content": 3}, {"api_content": "<memory-context>"}])
def test_a_message_without_a_fence_holds_nothing(message):
    """Whatever stands there, reading it ends well."""
    assert list(fenced_items(message)) == []


def test_a_branch_begins_with_the_window_it_left():
    """The branch's window holds what the other's held; after that each is its own."""
    injected = InjectedRecall()
    injected.take("s", [("holo", [A])], 800)
    injected.copy("s", "branch")
    assert injected.take("branch", [("holo", [A])], 800) == ""
    injected.forget("branch")
    assert injected.take("branch", [("holo", [A])], 800) != ""


def test_the_table_is_bounded():
    """Sessions and items are forgotten oldest first (G10)."""
    injected = InjectedRecall()
    for number in range(MAX_SESSIONS + 5):
        injected.take(f"s{number}", [("holo", [A])], 800)
    assert len(injected._windows) == MAX_SESSIONS
    injected.take("s", [("holo", [line(f"fact {n}") for n in range(MAX_ITEMS + 9)])], 1 << 20)
    assert len(injected._windows["s"]) == MAX_ITEMS
