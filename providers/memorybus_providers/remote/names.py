"""Names of owners and sessions in a service: letters, digits, ``-`` and ``_``; no two are the same.

Ids are hostile data; the names that a service gets are safe. A plain lower-case id is its own name.
The name of any other id is its readable part, a ``_`` and a digest of the whole id; no plain id
contains a ``_``. The names of several ids are joined by ``__``, which no single name contains. So
two lists of ids never have the same name, and a person can still read who is meant.
"""

import re

from memorybus.ids import derived_id

LONGEST = 100
"""Characters of a name at most: what the strictest of the services allows."""

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE = 24


def name_of(*ids: str) -> str:
    """Return the name of a list of ids: the same everywhere, at most `LONGEST` characters."""
    joined = "__".join(map(_single_name, ids))
    if len(joined) <= LONGEST:
        return joined
    return f"{_readable('-'.join(ids))}_{derived_id('names', *ids)}"


def _single_name(one: str) -> str:
    if _PLAIN.fullmatch(one):
        return one
    return f"{_readable(one)}_{derived_id('name', one)}"


def _readable(text: str) -> str:
    return _UNSAFE.sub("-", text.lower())[:_READABLE].strip("-") or "id"
