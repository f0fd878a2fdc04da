"""Reads the writes of Hermes's ``memory`` tool from its hook or from a call's result. Pure."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast, get_args

import msgspec
from memorybus.events import StoreName, WriteAction

from memorybus_hermes.scopes import FileWrite

_ACTIONS = get_args(WriteAction)
_OLD_ENTRY_PREFIXES: Mapping[str, str] = MappingProxyType(
    {"replace": "replaced", "remove": "removed", "patch": "patched"}
)
"""How a result names the entry that an action took away: ``replaced_entry``, ``removed_entry``."""

_NO_PROVENANCE = frozenset(("old_text", "previous_content", "session_id", "parent_session_id"))


class ToolWrite(msgspec.Struct, frozen=True):
    """One operation of a call, in the tool's own terms."""

    action: str  # add, replace or remove
    target: str
    content: str = ""
    old_text: str = ""  # the part of an entry by which the model named it
    previous: str = ""  # the whole old entry, from releases whose result contains it

    @property
    def old_entry_metadata(self) -> dict[str, str]:
        metadata = {"old_text": self.old_text, "previous_content": self.previous}
        return {name: text for name, text in metadata.items() if text}


def writes_of_call(result: object, arguments: Mapping[str, Any]) -> list[ToolWrite]:
    """Return the writes of a call, single or batched, in their order.

    A patch, which changes a part of an entry, replaces the whole entry, as Hermes reports it.

    There are none if the call failed, waits for approval, or has a result that cannot be read,
    because only writes that took effect may be remembered. Other actions (``read``) are left out.
    """
    landed = _successful_result(result)
    if landed is None:
        return []
    target = str(arguments.get("target") or "memory")
    batch = arguments.get("operations")
    is_batch = isinstance(batch, list) and bool(batch)
    operations = enumerate(batch or (), start=1) if is_batch else [(0, arguments)]
    writes = [
        _write(target, operation, landed, number)
        for number, operation in operations
        if isinstance(operation, Mapping)
    ]
    return [write for write in writes if write.action in _ACTIONS]


def _successful_result(result: object) -> Mapping[str, Any] | None:
    """Return the result of a call that wrote something, else None."""
    if isinstance(result, str):
        try:
            result = json.loads(result)
        except ValueError:
            return None
    if not isinstance(result, Mapping):
        return None
    landed = result.get("success") is True and result.get("staged") is not True
    return result if landed else None


def _previous(result: Mapping[str, Any], operation: Mapping[str, Any], number: int) -> str:
    """Return the entry that an operation replaced or removed, if the result contains it."""
    taken = _OLD_ENTRY_PREFIXES.get(str(operation.get("action")), "")
    return _entry(result, taken, number) or _entry(result, taken, number, "_before")


def _entry(result: Mapping[str, Any], name: str, number: int, when: str = "") -> str:
    entry = result.get(f"{name}_entries{when}" if number else f"{name}_entry{when}")
    if number:
        entry = entry.get(str(number)) if isinstance(entry, Mapping) else ""
    return entry if isinstance(entry, str) else ""


def _write(
    target: str, operation: Mapping[str, Any], result: Mapping[str, Any], number: int
) -> ToolWrite:
    previous = _previous(result, operation, number)
    if operation.get("action") == "patch":
        after = _entry(result, "patched", number, "_after")
        return ToolWrite(
            "replace" if after else "",
            target,
            after,
            str(operation.get("old_text") or ""),
            previous,
        )
    return ToolWrite(
        action=str(operation.get("action") or ""),
        target=target,
        content=str(operation.get("content") or operation.get("new_text") or ""),
        old_text=str(operation.get("old_text") or ""),
        previous=previous,
    )


# -- what the hook reports -------------------------------------------------------------------------


def file_write(action: str, target: str, content: str, metadata: Mapping[str, Any]) -> FileWrite:
    """Return a write of Hermes's memory tool as a `FileWrite`.

    The entry that was replaced or removed is named by its whole text (``previous_content``), from
    releases that pass it, else by the part that the model named.
    """
    store: StoreName = "user" if target == "user" else "memory"
    old_text = str(metadata.get("previous_content") or metadata.get("old_text") or "")
    if action == "remove":
        return FileWrite("remove", store, "", old_text or content)
    return FileWrite(cast("WriteAction", action), store, content, old_text)  # the session checks it


def provenance(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return where a write came from, under Hermes's own names."""
    details = {key: value for key, value in metadata.items() if key not in _NO_PROVENANCE}
    named = {str(k): str(v) for k, v in details.items() if isinstance(v, str | int) and v != ""}
    return {"origin": "hermes"} | named
