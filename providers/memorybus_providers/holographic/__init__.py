"""SQLite full-text memory: what was said and kept, found again by its words.

``provider`` holds the hooks; ``database`` the schema; ``store`` the open file; ``utterances`` and
``kept`` write; ``query``, ``ranking`` and ``recall`` find; ``tools`` serve the model.
"""

from memorybus_providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
