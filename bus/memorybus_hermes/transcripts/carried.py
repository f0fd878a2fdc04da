"""Follows messages through compressions, which store some of them anew. Pure.

Hermes marks a row as ``compacted`` if a summary replaced it, and as neither ``active`` nor
``compacted`` if the person took it back. Since 0.21 a compression marks the rows that it carries
over in the latter way, too, and stores them anew. So only the newest row of a message shows what
became of the message. The rows of a message have the same ``message_uid`` (since 0.22) or the same
role and time. If a row absorbed other messages, their fate is the fate of that row.

In 0.19 a row that was stored anew has a time of its own, and its original counts as compacted.
"""

from array import array
from collections.abc import Hashable, Iterable

import msgspec


class RowMark(msgspec.Struct, frozen=True):
    """What a row shows of a message, without its content.

    Attributes:
        names: the names that all rows of its message have in common; none for a mere summary, which
            keeps the time of the message that it was merged with.
        absorbed: the names of other messages whose words this row contains, too.
    """

    id: int
    names: tuple[Hashable, ...]
    active: bool
    stands: bool
    absorbed: tuple[Hashable, ...] = ()
    by_host: bool = False  # whether Hermes wrote or removed the row on its own account


class Carried(msgspec.Struct, frozen=True):
    """What became of the messages of a session.

    Attributes:
        taken_back: those of `first` whose messages the person took back, each with the id of the
            message's newest row, which does not change any more.
    """

    first: "array[int]"  # the ids of each message's first row, ascending
    taken_back: dict[int, int]


def follow(rows: Iterable[RowMark]) -> Carried:
    """Return the messages that some rows stand for; the rows come in the order of their ids."""
    first: array[int] = array("q")
    owners: dict[Hashable, int] = {}
    newest: dict[int, RowMark] = {}
    absorbed_by: dict[int, int] = {}
    for row in rows:
        if row.by_host and not row.active:
            continue
        message = next((owners[name] for name in row.names if name in owners), row.id)
        if message == row.id:
            first.append(row.id)
        if not row.active:
            owners.update(dict.fromkeys(row.names, message))
        if message in newest or not row.active:
            newest[message] = row
        absorbed_by |= {owners[name]: message for name in row.absorbed if name in owners}
    gone = {}
    for message, last in newest.items():
        heir = newest.get(absorbed_by.get(message, message))
        if not last.stands and heir is not None and not heir.stands:
            gone[message] = last.id
    return Carried(first, gone)
