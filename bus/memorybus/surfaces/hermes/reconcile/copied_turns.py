"""Tells the turns of a session from the copies of turns that Hermes begins some of them with.

A branch begins with a copy of the whole conversation, and so does what follows a compression: the
first messages, a summary, the last messages, stored anew under the same id or another. So where
copies may stand, a turn that its family of sessions has told before is one; the first that it has
not told ends the copies. Everywhere else people may well say the same twice.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from memorybus.surfaces.hermes.transcripts.stored_turns import Compacted, StoredTurn

_HELD = 32
"""Turns held back for a summary that may follow: Hermes keeps three messages before it."""


def originals(
    read: Iterable[StoredTurn | Compacted],
    first_told: Callable[[StoredTurn], bool],
    *,
    continued: bool,
) -> Iterator[StoredTurn]:
    """Yield the turns that are no copies, in order.

    Args:
        read: a session's turns and where it was compressed.
        first_told: whether the family has not had a turn before; remembers it.
        continued: whether the session goes on another one, so that it begins with copies.
    """
    copying = continued
    held: deque[StoredTurn] = deque()
    for item in read:
        if isinstance(item, Compacted):
            held.clear()
            copying = True
        elif first_told(item):
            copying = False
            yield from held
            held.clear()
            yield item
        elif not copying:
            held.append(item)
            if len(held) > _HELD:
                yield held.popleft()
    yield from held
