"""Items of the OpenAI Responses API as the messages of a turn, and back; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from memorybus.events import TurnCompleted

Item = dict[str, Any]


def split_turns(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield the items of each turn: a turn begins with what the person said."""
    turn: list[Item] = []
    for item in items:
        if turn and item.get("role") == "user" and turn[-1].get("role") != "user":
            yield turn
            turn = []
        turn.append(item)
    if turn:
        yield turn


def words_of(items: Iterable[Item], *roles: str) -> list[str]:
    """Return the texts of some sides' messages, without empty ones."""
    texts = [_text(item.get("content")) for item in items if item.get("role") in roles]
    return [text for text in texts if text]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def is_complete(items: Sequence[Item]) -> bool:
    """Whether the agent has answered, or waits for a person: a call has no output yet."""
    last, outputs = items[-1], {item.get("call_id") for item in items if _is_output(item)}
    answered = last.get("role") == "assistant" or last.get("type") == "mcp_approval_request"
    return answered or not _calls(items) <= outputs


def completed(opened: list[Item], items: Iterable[Item]) -> tuple[list[list[Item]], list[Item]]:
    """Return the turns that new items complete, and the items of the turn that is open then.

    The same prompt again is a run that is repeated: what its first try left is void.
    """
    turns = []
    for new in split_turns(items):
        prompt = words_of(new, "user")
        if prompt and opened:
            if prompt != words_of(opened, "user"):
                turns.append(opened)
            opened = []
        opened = [*opened, *new]
        if is_complete(opened):
            turns.append(opened)
            opened = []
    return turns, opened


def without_orphans(items: Sequence[Item]) -> list[Item]:
    """Leave out outputs without their call: for one, the API refuses the whole conversation."""
    calls = {*_calls(items), None}
    return [item for item in items if not _is_output(item) or item.get("call_id") in calls]


def _calls(items: Iterable[Item]) -> set[Any]:
    return {item["call_id"] for item in items if "call_id" in item and not _is_output(item)}


def _is_output(item: Item) -> bool:
    return str(item.get("type", "")).endswith("_output")


def message_of(item: Item) -> Item:
    """Return an item as a chat message, from which `items_of` makes the same item again."""
    if "role" in item:
        return item
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "item": item}
    if item.get("type") != "function_call":
        return {"item": item}
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    call = {"id": item.get("call_id"), "type": "function", "function": function}
    return {"role": "assistant", "tool_calls": [call], "item": item}


def items_of(turn: TurnCompleted) -> list[Item]:
    """Return a turn's items; of a turn that another kind of agent published, its words."""
    own = [message.get("item", message) for message in turn.messages]
    if own and not any("tool_calls" in item or item.get("role") == "tool" for item in own):
        return own
    said = (("user", turn.user), ("assistant", turn.assistant))
    return [{"role": role, "content": text} for role, text in said if text]
