"""MentisDB (https://mentisdb.com): an append-only, hash-chained memory of thoughts.

Its REST API (0.9) is called as its own client calls it: the package ``pymentisdb`` 0.9.0 holds no
code. ``urllib3`` (the extra ``mentisdb``) is imported when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``service``: requests with the bus's errors, deadlines and pauses. ``store``: an account's chains.
- ``chains``: their names. ``thoughts``: events as thoughts. ``ledger``: which thoughts still count.
- ``finding``: the requests of a recall. ``keeping``: export, and marking as forgotten.
"""

from memorybus_providers.mentisdb.provider import MentisDbProvider

__all__ = ["MentisDbProvider"]
