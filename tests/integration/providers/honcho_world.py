"""A Honcho provider on a fake server, and events on their way into it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.services.honcho_server import HonchoServer, honcho_server
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import Transient
from memorybus.events import AnyEvent, Scope, SessionRef
from memorybus_providers.base import MemoryProvider, ProviderConfig, RecallContext, RecallScope
from memorybus_providers.contract.samples import SampleStep, hook_context
from memorybus_providers.dispatch import bind
from memorybus_providers.honcho import HonchoProvider

ADA = Scope(agent="coder", user="ada")
BOB = Scope(agent="coder", user="bob")
TALK = SessionRef(id="talk", root="talk")


class World:
    """One instance and its server.

    Attributes:
        server: the fake.
        provider: the instance, open.
    """

    def __init__(self, server: HonchoServer, provider: MemoryProvider) -> None:
        """Number events from 1."""
        self.server, self.provider = server, provider
        self._n = 0

    def step(self, event: AnyEvent, scope: Scope = ADA, session: SessionRef = TALK) -> SampleStep:
        """Return an event with a place in the log."""
        self._n += 1
        return SampleStep(self._n, event, scope, session)

    def send(self, step: SampleStep, deadline: float = 30.0) -> None:
        """Apply an event once."""
        bind(self.provider)(step.event, hook_context(step, deadline=deadline))

    def tell(self, event: AnyEvent, scope: Scope = ADA, session: SessionRef = TALK) -> SampleStep:
        """Apply an event, and return it."""
        step = self.step(event, scope, session)
        self.send(step)
        return step

    def deliver(self, step: SampleStep, deadline: float = 30.0) -> list[Transient]:
        """Apply an event as a lane does: what is in doubt is asked for before it is sent again."""
        failed: list[Transient] = []
        while not failed or not self.knows(step):
            try:
                self.send(step, deadline)
            except Transient as error:
                failed.append(error)
            else:
                break
        return failed

    def knows(self, step: SampleStep) -> bool:
        """Ask whether an event is held."""
        return self.provider.knows(step.event_id, hook_context(step))

    def recall(
        self, query: str, scope: Scope = ADA, session: SessionRef | None = None
    ) -> list[str]:
        """Return the texts that a recall finds."""
        ctx = RecallContext(RecallScope.own(scope), session)
        return [one.text for one in self.provider.prefetch(query, ctx)]

    def call(self, tool: str, scope: Scope = ADA, **arguments: Any) -> Any:
        """Call a tool."""
        self._n += 1
        step = SampleStep(self._n, None, scope, TALK)  # type: ignore[arg-type]  # no event
        return self.provider.handle_tool_call(tool, arguments, hook_context(step))

    def writes(self) -> list[str]:
        """Return the paths of the requests that stored messages or conclusions."""
        ends = ("/messages", "/conclusions")
        return [path for method, path in self.server.asked if path.endswith(ends)]


@contextmanager
def honcho_world(home: Path, clock: Clock = SYSTEM, **options: Any) -> Iterator[World]:
    """Open an instance on a server of its own."""
    with honcho_server() as server, opened(home, server.url, clock, **options) as provider:
        yield World(server, provider)


@contextmanager
def opened(home: Path, url: str, clock: Clock = SYSTEM, **options: Any) -> Iterator[HonchoProvider]:
    """Open an instance on a server."""
    said = {"base_url": url, "dialectic_every": 0, **options}
    provider = HonchoProvider(ProviderConfig(name="peers", home=home, options=said, clock=clock))
    provider.open()
    try:
        yield provider
    finally:
        provider.shutdown()


def unused_port() -> int:
    """Return a port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
