"""What a call of Hermes's ``memory`` tool wrote, read from its arguments and its result. Pure."""

import json
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from memorybus.events import WriteAction

_ACTIONS = get_args(WriteAction)


class ToolWrite(msgspec.Struct, frozen=True):
    """One operation of a call, in the tool's own terms."""

    action: str
    target: str
    content: str = ""
    old_text: str = ""


def written_by_tool(result: object, arguments: Mapping[str, Any]) -> list[ToolWrite]:
    """Return the writes of a call, single or batched, in their order.

    None of a call that failed, that waits for approval, or whose result cannot be read: what did
    not land must not be remembered. Other actions (``read``) are left out.
    """
    if not _landed(result):
        return []
    target = str(arguments.get("target") or "memory")
    batch = arguments.get("operations")
    operations = batch if isinstance(batch, list) and batch else [arguments]
    found = [_write(target, one) for one in operations if isinstance(one, Mapping)]
    return [write for write in found if write.action in _ACTIONS]


def _landed(result: object) -> bool:
    if isinstance(result, str):
        try:
            result = json.loads(result)
        except ValueError:
            return False
    if not isinstance(result, Mapping):
        return False
    return result.get("success") is True and result.get("staged") is not True


def _write(target: str, operation: Mapping[str, Any]) -> ToolWrite:
    fields = {name: str(operation.get(name) or "") for name in ("action", "content", "old_text")}
    return ToolWrite(target=target, **fields)
