"""A write of Hermes's memory tool as its hook tells of it, in our words: pure functions."""

from collections.abc import Mapping
from typing import Any, cast

from memorybus.events import StoreName, WriteAction
from memorybus.surfaces.hermes.entries import Write


def written(action: str, target: str, content: str, metadata: Mapping[str, Any]) -> Write:
    """Return a write of Hermes's memory tool in our words.

    The entry that was replaced or removed is known by its whole text (``previous_content``), from
    releases that tell it, else by the part of it that the model named.
    """
    store: StoreName = "user" if target == "user" else "memory"
    old_text = str(metadata.get("previous_content") or metadata.get("old_text") or "")
    if action == "remove":
        return Write("remove", store, "", old_text or content)
    return Write(cast("WriteAction", action), store, content, old_text)  # the session checks it


_NO_PROVENANCE = frozenset(("old_text", "previous_content", "session_id", "parent_session_id"))


def provenance(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return where a write came from, in the names that Hermes gives."""
    told = {key: value for key, value in metadata.items() if key not in _NO_PROVENANCE}
    named = {str(k): str(v) for k, v in told.items() if isinstance(v, str | int) and v != ""}
    return {"origin": "hermes"} | named
