"""``python -m helpers.processes.ending WAY``: an agent that publishes its last events and ends.

It has worked for a while: its bus is connected. It ends in the moment of its last event.
"""

import atexit
import os
import sys
from collections.abc import Callable, Mapping

from memorybus.agent.client import MemoryBus
from memorybus.agent.session import Session
from memorybus.config.settings import load

LAST = 2
"""Events that it publishes as it ends, its session's start apart."""

_AT_EXIT = "an exit function"


def _publish(session: Session) -> None:
    session.turn_completed("the last question", "the last answer")
    session.ended()


def _from_a_block(bus: MemoryBus, session: Session) -> None:
    with bus:
        _publish(session)


def _by_exit(bus: MemoryBus, session: Session) -> None:
    _publish(session)
    sys.exit(0)


def _at_once(bus: MemoryBus, session: Session) -> None:
    _publish(session)
    bus.hurry(20)
    os._exit(0)


WAYS: Mapping[str, Callable[[MemoryBus, Session], None]] = {
    "the end of main": lambda _, session: _publish(session),
    "a with block": _from_a_block,
    "sys.exit": _by_exit,
    "os._exit after hurry": _at_once,
    _AT_EXIT: lambda *_: None,
}


def main(way: str) -> None:
    """Connect, wait until that is done, and end."""
    started: list[Session] = []
    if way == _AT_EXIT:  # registered before the bus is made, so it runs after the bus's own
        atexit.register(lambda: _publish(started[0]))
    bus = MemoryBus.connect(load())
    started.append(bus.session("s", warm=False))
    assert bus.flush("logged", 45)
    WAYS[way](bus, started[0])


if __name__ == "__main__":
    main(sys.argv[1])
