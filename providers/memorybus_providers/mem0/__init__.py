"""Mem0: its open-source library on a store of your own, or its self-hosted server.

Where to look:

- ``provider``: the hooks that memorybus calls, for both; ``tools``: those that a model calls.
- ``memories``: what an event becomes, and under which ids; pure.
- ``stores``: what a provider asks of Mem0. ``library`` and ``server`` are the two that answer.
- ``options``: what an instance's table may say.

Facts of mem0ai 2.2.1 that it stands on, each seen: with ``infer`` off each message is a row, the
same one twice is two rows; rows are found by ``run_id`` and by our metadata; ``get_all`` shows 20
unless told otherwise, ``search`` leaves out scores below 0.1; ``"*"`` matches any id; after a
deletion the texts stay in its history database; an embedded Qdrant locks its folder to one
process; processes that make a pgvector collection at once fail, and not the second time.
"""

from memorybus_providers.mem0.provider import Mem0Provider, Mem0ServerProvider

__all__ = ["Mem0Provider", "Mem0ServerProvider"]
