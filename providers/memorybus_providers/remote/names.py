"""Names for owners and sessions in a service: letters, digits, ``-`` and ``_``, never shared.

Ids are hostile data; the name that a service gets never is. A plain lower-case id is its own name.
Any other is its readable part and a digest of the whole id behind a ``_``, which no plain name
contains. Several ids are joined by ``__``, which no name contains. So two lists of ids never have
one name, and a person reads who is meant.
"""

import re

from memorybus.ids import derived_id

LONGEST = 100
"""Characters of a name at most: what the strictest of the services allows."""

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE = 24


def name_of(*ids: str) -> str:
    """Return the name that stands for a list of ids: the same one everywhere, `LONGEST` at most."""
    joined = "__".join(map(_named, ids))
    if len(joined) <= LONGEST:
        return joined
    return f"{_readable('-'.join(ids))}_{derived_id('names', *ids)}"


def _named(one: str) -> str:
    if _PLAIN.fullmatch(one):
        return one
    return f"{_readable(one)}_{derived_id('name', one)}"


def _readable(text: str) -> str:
    return _UNSAFE.sub("-", text.lower())[:_READABLE].strip("-") or "id"
