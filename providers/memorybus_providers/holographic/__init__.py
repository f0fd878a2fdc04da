"""SQLite full-text memory: what was said and kept, found again by its words.

Where to look:

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``store``: the open file and its transactions. ``schema``: its tables. ``digest``: its state (G8).
- ``writing``: ``utterances`` (what was said), ``entries`` (what was kept), ``judgements`` (feedback
  on facts), ``corrections`` by tool, ``former`` entries, each in the rows of ``sessions``.
- ``finding``: ``recall`` searches the index; ``rows``: how a fact is read, and whose facts may be;
  ``lookup``: lists; ``standing``: what holds now; ``entities`` and their ``connections``.
- ``meaning``: vectors beside the facts, if an embedder is configured.

What it finds is ordered by the packages that need no database: ``language`` reads texts and
questions, ``ranking`` orders facts, ``truth`` says what holds.
"""

from memorybus_providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
