"""What became of messages that compressions stored anew."""

from collections.abc import Hashable

from memorybus_hermes.transcripts.carried import Carried, RowMark, follow


def row(number: int, state: str, *names: Hashable, **more: object) -> RowMark:
    """Return a row that is active, summarised or gone."""
    return RowMark(number, names, state == "active", state != "gone", **more)


def fates(*rows: RowMark) -> tuple[list[int], dict[int, int]]:
    """Return the messages, and those that were taken back."""
    found: Carried = follow(rows)
    return list(found.first), found.taken_back


def test_a_carried_message_is_where_its_newest_row_is():
    """Two generations of compressions store a message three times: it is one, and it stands."""
    rows = row(1, "gone", "a"), row(2, "gone", "b"), row(3, "gone", "a"), row(4, "active", "a")
    assert fates(*rows) == ([1, 2], {2: 2})


def test_a_carried_message_that_is_taken_back_is_so_once():
    """An undo after a compression takes a message back, also one that was summarised first."""
    assert fates(row(1, "gone", "a"), row(3, "gone", "a")) == ([1], {1: 3})
    assert fates(row(1, "summary", "a"), row(3, "gone", "a")) == ([1], {1: 3})
    assert fates(row(1, "gone", "a"), row(3, "summary", "a")) == ([1], {})


def test_any_name_links_two_rows():
    """Older rows have no id in common, only role and time: either shows that a message stands."""
    assert fates(row(1, "gone", "time"), row(2, "active", "uid", "time")) == ([1], {})
    assert fates(row(1, "gone", "time", "uid"), row(2, "active", "later", "uid")) == ([1], {})


def test_two_messages_in_the_window_are_two():
    """Rows of an import may share a time: only a row outside of the window is carried over."""
    assert fates(row(1, "active", "a"), row(2, "active", "a")) == ([1, 2], {})


def test_an_absorbed_message_stands_with_the_row_that_has_its_words():
    """Hermes merges messages: those whose words another row has are gone only with that row."""
    merged = row(1, "gone", "a"), row(2, "gone", "b")
    assert fates(*merged, row(3, "active", "a", absorbed=("b",))) == ([1, 2], {})
    assert fates(*merged, row(3, "gone", "a", absorbed=("b",))) == ([1, 2], {1: 3, 2: 2})


def test_a_prompt_that_hermes_stored_anew_is_no_message():
    """What Hermes removed on its own account was not taken back by the person."""
    assert fates(row(1, "gone", "a", by_host=True), row(2, "active", "b")) == ([2], {})


def test_a_mere_summary_stands_for_no_message():
    """An undo leaves the summary of a merged message, with the time of that message."""
    assert fates(row(1, "gone", "a"), row(2, "gone", "a"), row(3, "active")) == ([1, 3], {1: 2})
