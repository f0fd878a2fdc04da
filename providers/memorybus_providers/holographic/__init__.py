"""SQLite full-text memory: what was said and kept, found again by its words.

Where to look:

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls,
  described in ``tool_arguments``.
- ``store``: the open file and its transactions. ``schema``: its tables. ``digest``: its state (G8).
- Writing: ``utterances`` (what was said), ``entries`` (what was kept), ``judgements`` (feedback on
  facts), each in the rows of ``sessions``. ``facts``: texts, passages and names of facts.
- Finding: ``query`` reads a question, with ``english``; ``recall`` searches the index; ``ranking``
  orders what it found. ``rows``: how a fact is read, and whose facts may be; ``lookup``: lists.
- What holds now: ``claims`` reads what a text claims, ``succession`` who takes whose place,
  ``standing`` asks for it; ``corrections`` by tool, ``former`` entries of the stores.
- Entities: ``mentions`` reads names and roles in a text; ``entities`` says who is meant;
  ``connections`` follows them from fact to fact.
"""

from memorybus_providers.holographic.provider import HolographicProvider

__all__ = ["HolographicProvider"]
