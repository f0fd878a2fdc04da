"""Which parts of a system prompt providers add, where several know the same."""

import pytest
from memorybus.agent.system_prompts import new_sections

STORE = ("  MEMORY [1% of 9]", "  Speaks Polish", "  Likes tea")

CASES = [
    ([("one", STORE), ("two", ("  - Likes tea", "  - Rows"))], "", [3, 1]),
    ([("one", STORE), ("two", ("  - Likes tea",))], "", [3]),
    ([("one", STORE), ("two", STORE)], "", [3, 3]),
    ([("one", STORE)], "MEMORY\nSpeaks Polish\nLikes tea", []),
    ([("one", ("  - Likes tea",))], "Likes tea", []),
]


@pytest.mark.parametrize(("sections", "known", "left"), CASES)
def test_what_was_said_before_is_left_out(sections, known, left):
    """An item that an earlier provider or the prompt itself has is not said again."""
    assert [len(lines) for _, lines in new_sections(sections, known)] == left
