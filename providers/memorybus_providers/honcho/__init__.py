"""Honcho (https://honcho.dev): a service that keeps conversations and reasons about who speaks.

Its API v3 is called by its own client (``honcho-ai`` 2.7, the extra ``honcho``), which is imported
when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``service``: the client behind the bus's errors, deadlines and pauses. ``tenant``: one owner's
  workspace in it. ``places``: the names of workspaces, peers and sessions.
- ``outgoing``: what events become messages. ``notes``: writes to the stores, as conclusions.
- ``finding``: what a recall asks. ``dialectic``: the questions that cost a model's time;
  ``questions``: the file by which a host counts them.
"""

from memorybus_providers.honcho.provider import HonchoProvider

__all__ = ["HonchoProvider"]
