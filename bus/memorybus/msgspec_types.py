"""Types for msgspec, made ready so that several threads may decode into one at once.

msgspec 0.22 reads a struct's fields when a decoder first meets it, and lets other threads run
meanwhile. A thread that decodes into the same struct then finds fields without a type, and the
process ends with a segmentation fault: a worker once died of it while it started.
"""

import os
import threading
from typing import Final, TypeVar

import msgspec

_T = TypeVar("_T")

# The lock is reentrant, because a finalizer or a signal handler may call `prepared` while its own
# thread prepares a type.
_LOCK: Final = threading.RLock()

# No fork begins while a thread holds the lock: its child would wait for it for ever.
os.register_at_fork(
    before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
)


def prepared(kind: type[_T]) -> type[_T]:
    """Return `kind` once msgspec knows its fields, and those of all structs within it.

    Every type into which something is decoded or converted is passed here, unless it consists only
    of Python's own types. Once a type is known, this costs about a microsecond.
    """
    with _LOCK:
        msgspec.msgpack.Decoder(kind)
    return kind
