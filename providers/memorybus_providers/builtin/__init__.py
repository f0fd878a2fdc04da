"""The agent's own two memory files, mirrored: MEMORY.md and USER.md in the format of Hermes Agent.

Transactional (G4): checkpoint, ledger and files change together (`store`). Local: the files lie in
the instance's home (`places`). People may edit the files at any time; what they write stays.

There is no bound on a mirror's size of its own: an event says what the agent has already written,
within its own limits. The limits of this provider bound what `system_prompt_block` shows.

Where to look:

- ``provider``: the hooks that memorybus calls.
- ``store``: files, ledger and checkpoint in one transaction. ``database``: what lies beside the
  files. ``files``: how one is read and replaced.
- ``entries``: a file's text as entries; pure. ``ranking``: which entries answer a question.
- ``places``: where an owner's files lie. ``origins``: which event brought an entry.
- ``erasure``: what is erased of an owner.
"""

from memorybus_providers.builtin.provider import BuiltinProvider

__all__ = ["BuiltinProvider"]
