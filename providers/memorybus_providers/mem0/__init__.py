"""Keeps memories in Mem0: with its open-source library on your own store, or its own server.

Where to look:

- ``provider``: the hooks that memorybus calls, for both; ``tools``: those that a model calls.
- ``memories``: events as memories, and the ids under which they are stored; pure.
- ``library`` and ``server``: the requests that a provider makes, with the same methods.
- ``options``: the options of an instance.

Facts of mem0ai 2.2.1 that this relies on, each observed: with ``infer`` off each message is a row,
and the same message twice is two rows; rows are found by ``run_id`` and by our metadata;
``get_all`` shows 20 rows by default, and ``search`` leaves out scores below 0.1; ``"*"`` matches
any id; after a deletion the texts stay in the history database; an embedded Qdrant locks its folder
for one process; if several processes make the same pgvector collection at the same time, some fail,
but succeed when they try again.
"""

from memorybus_providers.mem0.provider import Mem0Provider, Mem0ServerProvider

__all__ = ["Mem0Provider", "Mem0ServerProvider"]
