"""Keeps what was said and what was noted in one SQLite file, and finds it again by its words.

Where to look:

- ``provider``: how an instance is opened; the hooks are in `memorybus_providers.fact_provider`.
- ``store``: the open file and its transactions. ``schema``: its tables. ``digest``: its state (G8).
- ``writing``: ``utterances`` (what was said), ``entries`` (what was kept), ``judgements`` (feedback
  on facts), ``corrections`` by tool, ``former`` entries, ``results`` of tools, each in the rows of
  ``sessions``.
- ``finding``: ``source`` answers what a search asks. ``rows``: the columns of a fact, and which
  scopes a query may see.
- ``meaning``: the vectors of the facts, if an embedder is configured.
- ``erasure``: export and erasure of what is stored for an owner.

Searching, ranking and the tools need no database: they are the packages ``finding``, ``tools``,
``language`` and ``ranking`` of `memorybus_providers`.
"""

from memorybus_providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
