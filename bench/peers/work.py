"""What every peer does with an event, and how it is given its events.

Runs inside the peers' own environments: the standard library, msgspec, and this suite's modules
that need no more. The harness says what to do in the environment:

- ``PEER_URL``: the Redis database.
- ``PEER_TASK``: ``noop`` counts; ``slow`` takes 20 ms and counts; ``hold`` writes the call down
  and does not return from the first one.
- ``PEER_DIR``: where counts and calls are written.
- ``PEER_CONCURRENCY``: how many handlers at once, for peers that are told.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from calls import Calls
from tally import Tally
from texts import turns

URL = os.environ["PEER_URL"]
TASK = os.environ["PEER_TASK"]
DIRECTORY = Path(os.environ["PEER_DIR"])
CONCURRENCY = int(os.environ.get("PEER_CONCURRENCY", "1"))

_SLOW_SECONDS = 0.020
_TEXTS = 500

Payload = dict[str, Any]


class Handler:
    """The work of one event."""

    def __init__(self) -> None:
        """Open what is written to."""
        self._tally = Tally(DIRECTORY / "tally")
        self._calls = Calls(DIRECTORY / "calls")

    def run(self, payload: Payload) -> None:
        """Handle an event, blocking."""
        if TASK == "hold":
            self._calls.hold_first()
        elif TASK == "slow":
            time.sleep(_SLOW_SECONDS)
        self._tally.hit()

    async def arun(self, payload: Payload) -> None:
        """Handle an event in an event loop."""
        if TASK == "hold":
            if self._calls.note():
                await asyncio.sleep(3_600)
        elif TASK == "slow":
            await asyncio.sleep(_SLOW_SECONDS)
        self._tally.hit()


class Command(NamedTuple):
    """What a peer's script is told: publish so many events (None: work)."""

    fill: int | None


def command() -> Command:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fill", type=int)
    return Command(parser.parse_args().fill)


def payloads(count: int) -> Iterator[Payload]:
    """Yield turns as plain objects, each with an id of its own."""
    texts = [msgspec.to_builtins(turn) for turn in turns(min(count, _TEXTS))]
    for number, turn in enumerate(islice(cycle(texts), count)):
        yield turn | {"id": f"{number:032x}"}


async def publish(count: int, emit: Callable[[Payload], Awaitable[Any]]) -> None:
    """Emit so many events, one after the other."""
    for payload in payloads(count):
        await emit(payload)
