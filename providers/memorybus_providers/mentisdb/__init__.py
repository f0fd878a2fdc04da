"""MentisDB (https://mentisdb.com): an append-only, hash-chained memory of thoughts.

Its REST API (0.9) is called as its own client calls it: the package ``pymentisdb`` 0.9.0 holds no
code. ``urllib3`` (the extra ``mentisdb``) is imported when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``service``: requests behind the bus's errors, deadlines and pauses. ``store``: an owner's chains.
- ``chains``: their names. ``thoughts``: what events become. ``ledger``: what no recall shows.
- ``finding``: what a recall asks. ``keeping``: what is given out, and marked as forgotten.
"""

from memorybus_providers.mentisdb.provider import MentisDbProvider

__all__ = ["MentisDbProvider"]
