"""What a command was asked to make: who asks for the same again goes on with what was begun.

What came of it is no measure: a lineage grows, and a moment ahead of the log is soon another place.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from memorybus.query.query import EVERYTHING, Query


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The words of a command, as its record keeps them.

    Attributes:
        query: which events, with lineages as they were named.
        since: the first moment, "" for the beginning.
        until: the last one, "" for none.
        options: what differs from the provider's.
        whole: whether nothing is taken over from the instance that serves.
        live: the instance that served then; "" where that is no matter.
    """

    query: Query = EVERYTHING
    since: str = ""
    until: str = ""
    options: dict[str, Any] = {}
    whole: bool = False
    live: str = ""


def as_kept(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a record holds them: a date of a command line is a text there."""
    return dict(msgspec.json.decode(msgspec.json.encode(options)))
