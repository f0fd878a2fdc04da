"""Mem0: its open-source library on a store of your own, or its self-hosted server.

Where to look:

- ``provider``: the hooks that memorybus calls, for both; ``tools``: those that a model calls.
- ``memories``: events as memories, and the ids under which they are stored; pure.
- ``stores``: the requests that a provider makes. ``library`` and ``server`` implement them.
- ``options``: what an instance's table may say.

Facts of mem0ai 2.2.1 that this relies on, each observed: with ``infer`` off each message is a row,
and the same message twice is two rows; rows are found by ``run_id`` and by our metadata;
``get_all`` shows 20 unless told otherwise, ``search`` leaves out scores below 0.1; ``"*"`` matches
any id; after a deletion the texts stay in the history database; an embedded Qdrant locks its folder
to one process; processes that make the same pgvector collection at once fail, but not when they try
again.
"""

from memorybus_providers.mem0.provider import Mem0Provider, Mem0ServerProvider

__all__ = ["Mem0Provider", "Mem0ServerProvider"]
