"""Mirrors the agent's own two memory files: MEMORY.md and USER.md in the format of Hermes Agent.

It is transactional (G4): checkpoint, ledger and files change together (`store`). It is local: the
files are in the instance's home (`places`). People may edit the files at any time; what they write
stays.

A mirror has no limit of size: an event says what the agent has already written, within its own
limits. The limits of this provider apply only to what `system_prompt_block` shows.

Where to look:

- ``provider``: the hooks that memorybus calls.
- ``store``: files, ledger and checkpoint in one transaction. ``database``: the SQLite file next to
  the memory files. ``files``: how a memory file is read and replaced.
- ``entries``: a file's text as entries; pure. ``ranking``: which entries answer a question.
- ``places``: where an owner's files are. ``origins``: which event brought an entry.
- ``erasure``: which entries an erasure takes out of the files.
"""

from memorybus_providers.builtin.provider import BuiltinProvider

__all__ = ["BuiltinProvider"]
