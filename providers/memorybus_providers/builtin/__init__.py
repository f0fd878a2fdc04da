"""Mirrors the agent's own two memory files: MEMORY.md and USER.md in the format of Hermes Agent.

It is transactional (G4): checkpoint, ledger and files change together (`store`). It is local: the
files are in the instance's home (`files`). People may edit the files at any time; what they write
stays.

A mirror has no limit of size: an event says what the agent has already written, within its own
limits. The limits of this provider apply only to what `system_prompt_block` shows.

Where to look:

- ``provider``: the hooks that memorybus calls.
- ``store``: transactions, the database, and erasure. ``origins``: where entries come from.
- ``files``: where the files are, read without loss and replaced once.
- ``entries``: a file's text as entries, and which of them suit a question; pure.
"""

from memorybus_providers.builtin.provider import BuiltinProvider

__all__ = ["BuiltinProvider"]
