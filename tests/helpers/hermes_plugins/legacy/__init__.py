"""A Hermes plugin with the oldest signatures: no keywords that came later, no metadata."""

import json
import os
from pathlib import Path

from agent.memory_provider import MemoryProvider


class Legacy(MemoryProvider):
    """Records as the recorder does."""

    name = "legacy"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        self._record("initialize", session_id)

    def prefetch(self, query):
        return f"about {query}"

    def queue_prefetch(self, query):
        """Do nothing."""

    def sync_turn(self, user_content, assistant_content):
        self._record("turn", user_content, assistant_content)

    def on_turn_start(self, turn_number, message):
        self._record("turn_start", turn_number, message)

    def on_memory_write(self, action, target, content):
        self._record("memory", action, target, content)

    def on_session_switch(self, new_session_id):
        self._record("switch", new_session_id)

    def on_delegation(self, task, result):
        self._record("delegation", task, result)

    def get_tool_schemas(self):
        return []

    def _record(self, *values):
        with (Path(os.environ["HERMES_HOME"]) / "calls.jsonl").open("a") as file:
            file.write(json.dumps(values) + "\n")


def register(ctx):
    ctx.register_memory_provider(Legacy())
