"""Keeps memories in Hindsight: each owner has a bank, and each event becomes a document in it.

Where to look:

- ``provider``: the hooks that memorybus calls, and ``tools``: those that a model calls.
- ``documents``: events as documents, and what Hindsight returns as structs of the bus.
- ``calls``: Hindsight's client with the bus's errors, deadlines and pauses.
- ``options``: the options of an instance.

Facts of Hindsight 1.1.0 that this relies on, each observed on its server: with the ``update_mode``
``replace``, a second document with the same ``document_id`` replaces the first and what was derived
from it, while ``append`` would duplicate it; the first retain makes a bank; a caller's
``operation_id`` makes a queued retain idempotent, but different content under a known id is dropped
silently; the tag matches ``any`` and ``all`` return untagged memories, too, but their ``_strict``
forms do not; a text of white space only, and a question without a word, are refused with 422.
"""

from memorybus_providers.hindsight.provider import HindsightProvider

__all__ = ["HindsightProvider"]
