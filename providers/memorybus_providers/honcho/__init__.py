"""Keeps conversations in Honcho (https://honcho.dev), a service that reasons about the speakers.

Its API v3 is called by its own client (``honcho-ai`` 2.7, the extra ``honcho``), which is imported
when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``account``: what hooks and tools do, each within its deadline.
- ``service``: the client, with the bus's errors, deadlines and pauses. ``tenant``: the workspace of
  one owner. ``messages``: its names, and events as messages. ``finding``: the requests of a recall.

Facts of server 3.0 that erasure relies on: it deletes a workspace in the background (202), and
refuses while the workspace has sessions (409); deleting only the sessions leaves the cards.
"""

from memorybus_providers.honcho.provider import HonchoProvider

__all__ = ["HonchoProvider"]
