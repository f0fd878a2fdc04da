"""Providers whose backend quotes the credentials it was sent, in what it raises and logs."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memorybus.errors import Unavailable
from memorybus_providers.base import HookContext, RecallContext, Recollection

from helpers.providers.recording import Blind, Keyed, KeyedSide, Transactional

OWN = "plain-words-of-ours"
"""Configured as ``api_key``: nothing in its form tells what it is."""

FORMED = "sk-live-4f9d2c7b81"
SECRETS = (OWN, FORMED, "hunter2")

_log = logging.getLogger("a.backend")


class _Leaky:
    """Does as its texts say: ``!poison`` is refused, ``!down=path`` is down while it exists."""

    config: Any

    def _remember(self, text: str, ctx: HookContext) -> None:
        _log.info("asked with %s for %s", self._sent(), text.partition("=")[0])
        if text == "!poison":
            raise ValueError(f"400 of {self._sent()}: {{'password': 'hunter2'}}")
        if text.startswith("!down=") and Path(text.partition("=")[2]).exists():
            raise Unavailable(f"503 of {self._sent()}")

    def _sent(self) -> str:
        own = self.config.options["api_key"]
        return f"https://crm:{FORMED}@crm.example/v1?q={own} (x-api-key: {FORMED})"

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        raise RuntimeError(f"500 of {self._sent()}")


class LeakyBlind(_Leaky, Blind):
    """Called by itself."""


class LeakyKeyed(_Leaky, Keyed):
    """Called in chunks."""


class LeakySide(_Leaky, KeyedSide):
    """Called from a pool of threads."""


class LeakyTransactional(_Leaky, Transactional):
    """Called in a transaction."""
