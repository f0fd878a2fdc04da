"""Keeps conversations in Honcho (https://honcho.dev), a service that reasons about the speakers.

Its API v3 is called by its own client (``honcho-ai`` 2.7, the extra ``honcho``), which is imported
when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``account``: what the hooks do, each within its deadline. ``calls``: what the tools do.
- ``service``: the client, with the bus's errors, deadlines and pauses. ``tenant``: the workspace of
  one owner. ``places``: the names of workspaces, peers and sessions.
- ``outgoing``: events as messages. ``notes``: writes to the stores, as conclusions.
- ``finding``: the requests of a recall.
- ``keeping``: export and erasure of a workspace.
"""

from memorybus_providers.honcho.provider import HonchoProvider

__all__ = ["HonchoProvider"]
