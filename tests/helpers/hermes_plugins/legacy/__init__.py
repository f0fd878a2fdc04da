"""A Hermes plugin with the oldest signatures: no keywords that came later, no metadata."""

import json
import os
from pathlib import Path

from agent.memory_provider import MemoryProvider


class Legacy(MemoryProvider):
    """Records as the recorder does."""

    name = "legacy"

    def is_available(self):
        """Say yes."""
        return True

    def initialize(self, session_id, **kwargs):
        """Record."""
        self._record("initialize", session_id)

    def prefetch(self, query):
        """Answer anything."""
        return f"about {query}"

    def queue_prefetch(self, query):
        """Do nothing."""

    def sync_turn(self, user_content, assistant_content):
        """Record."""
        self._record("turn", user_content, assistant_content)

    def on_turn_start(self, turn_number, message):
        """Record."""
        self._record("turn_start", turn_number, message)

    def on_memory_write(self, action, target, content):
        """Record."""
        self._record("memory", action, target, content)

    def on_session_switch(self, new_session_id):
        """Record."""
        self._record("switch", new_session_id)

    def on_delegation(self, task, result):
        """Record."""
        self._record("delegation", task, result)

    def get_tool_schemas(self):
        """Have none."""
        return []

    def _record(self, *values):
        with (Path(os.environ["HERMES_HOME"]) / "calls.jsonl").open("a") as file:
            file.write(json.dumps(values) + "\n")


def register(ctx):
    """Register as a memory provider."""
    ctx.register_memory_provider(Legacy())
