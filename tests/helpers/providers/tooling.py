"""Providers with tools, and with something to say before a compression.

Named as ``helpers.providers.tooling:Noting`` and the like. The note of ``note_add`` is an effect
like any other; a text that begins with one of `helpers.providers.recording`'s misdeeds makes its
hook misbehave.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from memorybus.events import ContextCompressing, TurnCompleted
from memorybus_providers.base import Capabilities, HookContext

from helpers.providers.recording import Keyed, KeyedSide, Transactional, misbehave

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_HANDLES = frozenset({TurnCompleted, ContextCompressing})


def schema(name: str, **more: Any) -> dict[str, Any]:
    """Return a function schema."""
    return {"name": name, "description": f"What {name} does.", "parameters": _TEXT} | more


class Tooling:
    """The tools: ``note_add`` writes a note, ``note_find`` finds some."""

    capabilities = Capabilities(
        tools=True, reading_tools=frozenset({"note_find"}), handles=_HANDLES
    )

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        return [schema("note_add"), schema("note_find")]

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        text = str(arguments["text"])
        if tool == "note_add":
            self._remember(text, ctx)
            return {"ok": True, "noted": text}
        misbehave(text)
        if text == "!much":
            return {"found": ["x" * 100_000]}
        rows = self.db.execute("select text from effects order by id")
        return {"ok": True, "found": [row[0] for row in rows if text in row[0]], "in": os.getpid()}

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Remember the messages, and say how many there were."""
        texts = [str(message["content"]) for message in event.messages]
        for text in texts:
            misbehave(text)
        self._remember(" ".join(texts), ctx)
        return f"kept {len(texts)} <messages>"


class Noting(Tooling, Keyed):
    """``keyed``, one call at a time."""


class Mailing(Noting):
    """``mail_send`` acts on the world: it must not be repeated."""

    capabilities = Capabilities(
        tools=True, outside_tools=frozenset({"mail_send"}), handles=_HANDLES
    )

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        return [schema("note_add"), schema("mail_send")]

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        return super().handle_tool_call("note_add", arguments, ctx)


class NotingSide(Tooling, KeyedSide):
    """``keyed``, several calls at once."""

    capabilities = Capabilities(
        tools=True, reading_tools=frozenset({"note_find"}), concurrent=True, handles=_HANDLES
    )


class NotingOnce(Tooling, Transactional):
    """``transactional``."""


class Deaf(Tooling, Keyed):
    """Hangs before every compression while the file of its options is there."""

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        misbehave(f"!hang={self.config.options['while']}")
        return "too late"


class Wordy(Tooling, Keyed):
    """Declares more than may be registered."""

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        return [schema("note_add", description="x" * 70_000)]
