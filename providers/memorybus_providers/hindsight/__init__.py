"""Hindsight: each owner's memories in a bank of their own, a document for each event.

Where to look:

- ``provider``: the hooks that memorybus calls, and ``tools``: those that a model calls.
- ``documents``: events as documents; ``sessions``: several turns in one document.
- ``stores``: writes to the agent's own stores, entry by entry.
- ``retractions``: deletion of what was retracted.
- ``calls``: Hindsight's client with the bus's errors, deadlines and pauses. ``answers``: what it
  returns, as the bus's structs.
- ``options``: what an instance's table may say.

Facts of Hindsight 1.1.0 that this relies on, each observed on its server: a ``document_id`` that
comes again replaces the document and what was derived of it (``update_mode`` replace), where
``append`` would double it; the first retain makes a bank; a caller's ``operation_id`` makes a
queued retain idempotent, and another content under a known id is dropped silently; the tag matches
``any`` and ``all`` return untagged memories, too, their ``_strict`` forms do not; a text of nothing
but white space, and a question without a word, are refused with 422.
"""

from memorybus_providers.hindsight.provider import HindsightProvider

__all__ = ["HindsightProvider"]
