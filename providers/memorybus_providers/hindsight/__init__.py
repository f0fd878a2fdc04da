"""Hindsight: each owner's memories in a bank of their own, a document for each event.

Where to look:

- ``provider``: the hooks that memorybus calls, and ``tools``: those that a model calls.
- ``documents``: what an event becomes; ``sessions``: several turns in one document.
- ``stores``: what the agent writes to its own stores, entry by entry.
- ``calls``: Hindsight's client behind the bus's errors, deadlines and pauses.
- ``options``: what an instance's table may say.

Facts of Hindsight 1.1.0 that it stands on, each seen on its server: a ``document_id`` that comes
again replaces the document and what was derived of it (``update_mode`` replace), where ``append``
would double it; a bank is made by the first retain; a caller's ``operation_id`` makes a queued
retain idempotent, and another content under a known one is dropped without a word; the tags' match
``any`` and ``all`` return untagged memories too, their ``_strict`` forms do not; a text of nothing
but white space, and a question without a word, are refused with 422.
"""

from memorybus_providers.hindsight.provider import HindsightProvider

__all__ = ["HindsightProvider"]
