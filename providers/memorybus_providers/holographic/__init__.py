"""SQLite full-text memory: what was said and kept, found again by its words.

``provider`` holds the hooks; ``database`` the schema; ``store`` the open file; ``utterances``,
``kept`` and ``judgements`` write; ``names`` are the facts' ids; ``query``, ``ranking`` and
``recall`` find; ``tools`` serve the model.
"""

from memorybus_providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
