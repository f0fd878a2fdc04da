"""Which writes a call of Hermes's memory tool stands for."""

import json

import pytest
from memorybus_hermes.plugin.memory_tool import ToolWrite, writes_of_call

DONE = {"success": True}
ADD = {"action": "add", "target": "user", "content": "Likes tea."}


@pytest.mark.parametrize(
    ("call", "write"),
    [
        (ADD, ToolWrite("add", "user", "Likes tea.")),
        ({"action": "add", "content": "x"}, ToolWrite("add", "memory", "x")),
    ],
)
def test_a_call_is_one_write_to_the_store_it_names(call, write):
    """Without a name that is Hermes's own default."""
    assert writes_of_call(json.dumps(DONE), call) == [write]


def test_a_batch_is_its_operations_in_order():
    """A batch is as many writes, and its own fields are none of them."""
    operations = [
        {"action": "replace", "content": "new", "old_text": "old"},
        "not an operation",
        {"action": "remove", "old_text": "gone"},
    ]

    found = writes_of_call(DONE, {**ADD, "target": "memory", "operations": operations})

    assert found == [
        ToolWrite("replace", "memory", "new", "old"),
        ToolWrite("remove", "memory", "", "gone"),
    ]


def test_the_result_tells_the_whole_entry_that_was_there():
    """Of a single call, and of a batch by the operation's place in it, from 1."""
    remove = {"action": "remove", "old_text": "tea"}
    replace = {"action": "replace", "old_text": "rum", "new_text": "Likes gin."}
    single = writes_of_call(DONE | {"removed_entry": "Likes tea."}, remove)
    batch = writes_of_call(
        DONE | {"removed_entries": {"2": "Likes tea."}, "replaced_entries": {"1": "Likes rum."}},
        {"operations": [replace, remove]},
    )

    assert [write.previous for write in single] == ["Likes tea."]
    assert [write.previous for write in batch] == ["Likes rum.", "Likes tea."]
    assert batch[0].content == "Likes gin."


def test_a_patch_replaces_the_whole_entry():
    """Since 0.22 a call may change a part of an entry; the result has the whole entry."""
    patch = {"action": "patch", "old_text": "tea", "content": "gin"}
    single = {"patched_entry_before": "Likes tea.", "patched_entry_after": "Likes gin."}
    batch = {
        "patched_entries": {"1": "Likes tea."},
        "patched_entries_after": {"1": "Likes gin."},
    }
    expected = [ToolWrite("replace", "memory", "Likes gin.", "tea", "Likes tea.")]
    assert writes_of_call(DONE | single, patch) == expected
    assert writes_of_call(DONE | batch, {"operations": [patch]}) == expected
    assert writes_of_call(DONE, patch) == [], "nothing says what the entry is now"


@pytest.mark.parametrize("told", [None, 7, "", ["Likes tea."], {"1": 7}, {"2": "another's"}])
def test_a_result_that_tells_no_entry_is_no_matter(told):
    """The part that the model named is what is known then."""
    result = DONE | {"removed_entry": told, "removed_entries": told}
    operation = {"action": "remove", "old_text": "tea"}
    found = writes_of_call(result, {"operations": [operation]})
    found += writes_of_call(result, operation) if not isinstance(told, str) else []

    assert {(write.old_text, write.previous) for write in found} == {("tea", "")}


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
def test_what_did_not_land_is_no_write(result):
    """A call that failed, waits for approval, or cannot be understood wrote nothing."""
    assert writes_of_call(result, ADD) == []


@pytest.mark.parametrize("action", ["read", "", None, "Add"])
def test_only_writes_are_mirrored(action):
    """Reading is no write, and neither is what is no action."""
    assert writes_of_call(DONE, {**ADD, "action": action}) == []
