"""Which writes a call of Hermes's memory tool stands for."""

import json
from typing import Any

import pytest
from memorybus.surfaces.hermes.tool_writes import ToolWrite, written_by_tool

DONE = {"success": True}
ADD = {"action": "add", "target": "user", "content": "Likes tea."}


def test_one_write() -> None:
    """A single call is one write to the store it names."""
    expected = [ToolWrite("add", "user", "Likes tea.")]

    assert written_by_tool(json.dumps(DONE), ADD) == expected


def test_a_batch_is_its_operations_in_order() -> None:
    """A batch is as many writes, and its own fields are none of them."""
    operations = [
        {"action": "replace", "content": "new", "old_text": "old"},
        "not an operation",
        {"action": "remove", "old_text": "gone"},
    ]

    found = written_by_tool(DONE, {**ADD, "target": "memory", "operations": operations})

    assert found == [
        ToolWrite("replace", "memory", "new", "old"),
        ToolWrite("remove", "memory", "", "gone"),
    ]


def test_the_store_is_memory_unless_named() -> None:
    """Hermes's own default."""
    assert written_by_tool(DONE, {"action": "add", "content": "x"})[0].target == "memory"


@pytest.mark.parametrize(
    "result",
    [
        {"success": False},
        {"success": True, "staged": True},
        {"success": "yes"},
        {},
        "not json",
        "[1]",
        None,
        7,
    ],
)
def test_what_did_not_land_is_no_write(result: Any) -> None:
    """A call that failed, waits for approval, or cannot be understood wrote nothing."""
    assert written_by_tool(result, ADD) == []


@pytest.mark.parametrize("action", ["read", "", None, "Add"])
def test_only_writes_are_mirrored(action: Any) -> None:
    """Reading is no write, and neither is what is no action."""
    assert written_by_tool(DONE, {**ADD, "action": action}) == []
