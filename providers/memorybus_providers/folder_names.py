"""Names of directories for agents and persons. Ids are hostile data; the names here are safe.

An id that is a plain lower-case name is its own directory. The name of any other is its readable
part, a ``~`` and a digest of the whole id; no plain name contains a ``~``. So two ids never share a
directory, even if the file system does not distinguish upper from lower case.
"""

import re

from memorybus.ids import derived_id

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE_CHARS = 40


def folder_of(owner: str) -> str:
    """Return the directory name of an agent or a user: safe, and different for different ids."""
    if _PLAIN.fullmatch(owner) and not _RESERVED.fullmatch(owner):
        return owner
    readable = _UNSAFE.sub("-", owner.lower())[:_READABLE_CHARS].strip("-")
    return f"{readable}~{derived_id('folder', owner)}"
