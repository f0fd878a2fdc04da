"""Keeps memories in MentisDB (https://mentisdb.com), which stores thoughts in hash-chained logs.

Its REST API (0.9) is called directly, since the package ``pymentisdb`` 0.9.0 contains no code.
``urllib3`` (the extra ``mentisdb``) is imported when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``service``: requests with the bus's errors, deadlines and pauses. ``store``: an account's chains.
- ``chains``: the names of chains. ``thoughts``: events as thoughts. ``ledger``: which thoughts are
  still valid.
- ``finding``: the requests of a recall. ``export``: what a chain holds.
"""

from memorybus_providers.mentisdb.provider import MentisDbProvider

__all__ = ["MentisDbProvider"]
