"""A provider that opens only with its key: what a service that wants one looks like."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from memorybus.errors import Unavailable
from memorybus.events import TurnCompleted
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    RecallContext,
    RecallScope,
    Recollection,
    Residue,
)

KEY = "open-sesame-please"


class Locked(MemoryProvider):
    """Keeps turns in a file of its home, once it is opened with the right key."""

    kind = "locked"
    placement = "local"
    capabilities = Capabilities(handles=frozenset({TurnCompleted}), forgets=True)

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        return [
            {"key": "key_env", "description": "its key", "secret": True, "required": True},
            {"key": "pace", "description": "how", "choices": ["fast", "deep"], "default": "fast"},
            {"key": "most", "description": "how many", "default": 7},
        ]

    def open(self) -> None:
        if os.environ.get(str(self.config.options["key_env"])) != KEY:
            raise Unavailable("HTTP 401: wrong key")
        self.config.home.mkdir(parents=True, exist_ok=True)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        with self._file.open("a") as file:
            file.write(event.user + "\n")

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        lines = self._file.read_text().splitlines() if self._file.exists() else ()
        return [Recollection(line) for line in lines]

    def forget(self, scope: RecallScope) -> Residue:
        self._file.unlink(missing_ok=True)
        return Residue()

    @property
    def _file(self) -> Any:
        return self.config.home / "turns.txt"
