"""SQLite full-text memory: what was said and kept, found again by its words.

Where to look:

- ``provider``: what is its own beside `memorybus_providers.fact_provider`, which has the hooks.
- ``store``: the open file and its transactions. ``schema``: its tables. ``digest``: its state (G8).
- ``writing``: ``utterances`` (what was said), ``entries`` (what was kept), ``judgements`` (feedback
  on facts), ``corrections`` by tool, ``former`` entries, ``results`` of tools, each in the rows of
  ``sessions``.
- ``finding``: ``source`` answers what a search asks, ``rows``: how a fact is read, and whose.
- ``meaning``: vectors beside the facts, if an embedder is configured.

How it is found, and what tools do, needs no database: ``finding``, ``tools``, ``language``,
``ranking`` and ``truth`` are packages beside this one.
"""

from memorybus_providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
