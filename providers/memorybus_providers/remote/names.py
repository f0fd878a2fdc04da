"""Makes different names of letters, digits, ``-`` and ``_`` for owners and sessions in a service.

Ids are hostile data; the names that a service gets are safe. A plain lower-case id is its own name.
Any other id becomes its readable part, a ``_`` and a digest of the whole id; no plain id contains a
``_``. The names of several ids are joined by ``__``, which no single name contains. So different
lists of ids never have the same name, and people can still read it.
"""

import re

from memorybus.ids import derived_id

MAX_NAME_CHARS = 100
"""The most characters of a name, which is what the strictest of the services allows."""

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_READABLE_CHARS = 24


def name_of(*ids: str) -> str:
    """Return the name of a list of ids: the same everywhere, at most `MAX_NAME_CHARS` long."""
    joined = "__".join(map(_single_name, ids))
    if len(joined) <= MAX_NAME_CHARS:
        return joined
    return f"{_readable('-'.join(ids))}_{derived_id('names', *ids)}"


def _single_name(one: str) -> str:
    if _PLAIN.fullmatch(one):
        return one
    return f"{_readable(one)}_{derived_id('name', one)}"


def _readable(text: str) -> str:
    return _UNSAFE.sub("-", text.lower())[:_READABLE_CHARS].strip("-") or "id"
