"""Keeps memories in MentisDB (https://mentisdb.com), which stores thoughts in hash-chained logs.

Its REST API (0.9) is called directly, since the package ``pymentisdb`` 0.9.0 contains no code.
``urllib3`` (the extra ``mentisdb``) is imported when an instance is opened.

- ``provider``: the hooks that memorybus calls. ``tools``: those that a model calls.
- ``store``: requests with the bus's errors, deadlines and pauses, and an account's chains.
- ``thoughts``: the names of chains, events as thoughts, and which thoughts are still valid.

Facts of server 0.9.7 that this relies on: REST listens on port 9472; an append has no idempotency
key and cannot be undone; any request that names a chain makes it, but ``GET /v1/chains`` does not;
bodies of more than 2 MB are refused.
"""

from memorybus_providers.mentisdb.provider import MentisDbProvider

__all__ = ["MentisDbProvider"]
