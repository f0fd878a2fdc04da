"""A provider that answers recalls as files in its home say, and the processes that ask it.

It keeps a line for each `open` and each call. While ``block`` exists a call waits, and while
``stubborn`` does it swallows what would interrupt it; ``down`` makes it fail, ``exit`` ends the
process.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import redis
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.errors import Unavailable
from memorybus.recall.model import RecallRequest, WarmResult, warm_results
from memorybus.recall.queue import queue_name
from memorybus.recall.requester import RecallRequester
from memorybus.redis.keys import Keys
from memorybus_providers.base import Capabilities, MemoryProvider, RecallContext, Recollection
from memorybus_workers.lanes.news import Inbox
from memorybus_workers.processes.recall_processes import RecallProcesses

from helpers.processes.waiting import T, wait_until

NOTES = "notes.jsonl"
SECRET = "hunter2-hunter2"
"""What must not be seen."""

REPLY_SECONDS = 20.0
"""Seconds for which Redis may be slow: a flusher asks again, a test asks once."""


class Answering(MemoryProvider):
    """Answers each query with itself."""

    kind = "answering"
    capabilities = Capabilities(recall=True)

    def open(self) -> None:
        self.config.home.mkdir(parents=True, exist_ok=True)
        self._note("open")

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Note it, then do what the files say."""
        ends = self._told("exit")  # first: who reads the note may take the file away
        self._note(query)
        if ends:
            os._exit(7)
        self._swallow()
        while self._told("block"):
            threading.Event().wait(0.02)
        if self._told("down"):
            raise Unavailable(f"http://me:{SECRET}@backend is down, api_key={SECRET}")
        return [Recollection(f"an answer to {query}", session="s")]

    def _swallow(self) -> None:
        """Wait while it is stubborn; what interrupts it, wherever in the loop, is swallowed."""
        stubborn = self._told("stubborn")
        while stubborn:
            with suppress(Exception):
                while stubborn:
                    threading.Event().wait(0.02)
                    stubborn = self._told("stubborn")

    def _told(self, what: str) -> bool:
        return (self.config.home / what).exists()

    def _note(self, what: str) -> None:
        with (self.config.home / NOTES).open("ab") as file:
            file.write(msgspec.json.encode((os.getpid(), what)) + b"\n")


class Recalls:
    """Asks providers and runs their recall processes.

    Attributes:
        watched: whether those that die are started again.

    Args:
        settings: their providers are of the kind above.
        client: of the server that the settings name.
    """

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self.settings = settings
        self.client = client
        self.keys = Keys(settings.namespace)
        self.asker = RecallRequester(client, settings, patience=REPLY_SECONDS)
        self.processes: RecallProcesses | None = None
        self.watched = True

    @property
    def provider(self) -> str:
        """The first provider."""
        return self.settings.providers[0]

    def start(self, count: int = 1, **changed: Any) -> None:
        """Start the recall processes; as settings that differ would have it."""
        settings = msgspec.structs.replace(self.settings, **changed)
        self.processes = RecallProcesses(settings, count, SYSTEM, Inbox())
        self.processes.serve(settings.providers)

    def stop(self) -> None:
        if self.processes is not None:
            self.processes.stop()
            self.processes = None

    def until(self, condition: Callable[[], T], what: str, timeout: float = REPLY_SECONDS) -> T:
        """Wait for a condition while the processes are watched, as a worker does."""

        def looked() -> T:
            if self.processes is not None and self.watched:
                self.processes.poll()
            return condition()

        return wait_until(looked, what, timeout)

    def ask(self, slot: str, query: str, providers: Sequence[str] = ()) -> None:
        """Ask for a recall, as the flusher does."""
        self.asker.request(
            slot, RecallRequest(query=query), list(providers or self.settings.providers)
        )

    def warm(self, slot: str, provider: str = "") -> str:
        fields: Any = self.client.hgetall(self.keys.warm(slot))
        results = warm_results(fields.items())
        return "\n".join(results.get(provider or self.provider, WarmResult()).lines)

    def answered(
        self, slot: str, query: str, timeout: float = REPLY_SECONDS, provider: str = ""
    ) -> None:
        what = f"an answer to {query}"
        self.until(lambda: what in self.warm(slot, provider), f"{what!r} is warm", timeout)

    def file(self, name: str, provider: str = "") -> Path:
        """Return one of the files that tell a provider what to do."""
        home = self.settings.provider_home(provider or self.provider)
        home.mkdir(parents=True, exist_ok=True)
        return home / name

    def notes(self, provider: str = "") -> list[tuple[int, str]]:
        """Return who did what: process and query, or ``open``."""
        path = self.file(NOTES, provider)
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [msgspec.json.decode(line, type=tuple[int, str]) for line in lines]

    def asked_in(self, query: str, provider: str = "", times: int = 1) -> int:
        """Wait until a query has reached the provider so often; return the last process."""

        def pids() -> list[int]:
            return [pid for pid, what in self.notes(provider) if what == query]

        return self.until(
            lambda: pids() if len(pids()) >= times else [], f"{query!r} is asked {times} times", 30
        )[-1]

    def queries(self, provider: str = "") -> list[str]:
        """Return what the provider was asked, in order."""
        return [what for _, what in self.notes(provider) if what != "open"]

    def queue_key(self, provider: str = "") -> str:
        """Return the key of a provider's waiting jobs."""
        return f"rq:queue:{queue_name(self.settings.namespace, provider or self.provider)}"

    def jobs(self) -> list[bytes]:
        """Return the keys of all jobs there are."""
        return list(self.client.scan_iter("rq:job:*", count=1000))
