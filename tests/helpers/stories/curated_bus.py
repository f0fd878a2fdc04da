"""A bus with a curator that may act at another time, and what tests ask it."""

import time
from contextlib import closing
from typing import Any

import redis
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings
from memorybus.events import MemoryCurated
from memorybus.redis.keys import Keys
from memorybus.registry.curation import CuratorRuns
from memorybus_console.actions.action import Ground, perform
from memorybus_console.operations import journal
from memorybus_console.operations.curation import CurationReport
from memorybus_console.operations.preview import Asker, preview_prompt
from memorybus_workers.curating.curator import Curator

from helpers.stories.scenario import PATIENT, wait_applied

NAME = "holographic"
DAY_MS = 86_400_000
SURE: Any = {**PATIENT, "recall_timeout": 30.0, "prefetch_wait": 30.0, "curator_every": 0.0}


class ShiftedClock:
    """The system's clock with another wall time, in days from now."""

    def __init__(self, days: float) -> None:
        self.days = days

    def now_ms(self) -> int:
        """Return the shifted wall time."""
        return SYSTEM.now_ms() + round(self.days * DAY_MS)

    def monotonic(self) -> float:
        """Return the time that only grows, as it is."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        SYSTEM.sleep(seconds)


class CuratedBus:
    """A bus with one worker, and its curator, which may act at another time."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self.settings = settings
        self.client = client
        self._asked = 0
        self.runs = CuratorRuns(client, Keys(settings.namespace))

    def remember(self, *texts: str, days: float = 0.0) -> None:
        """Let the agent write to the person's store, as if so many days ago."""
        at = SYSTEM.now_ms() - round(days * DAY_MS)
        with MemoryBus.connect(self.settings) as bus:
            session = bus.session("s", warm=False)
            for text in texts:
                session.memory_written("add", text, store="user", at=at)
            assert bus.flush("logged", 60)
        wait_applied(self.client, self.settings, NAME, 60)

    def act(self, action: Any, days: float = 0.0) -> CurationReport:
        """Perform an action so many days from now."""
        clock = ShiftedClock(days)
        report = perform(action, Ground(self.settings, "ops", 60, clock=clock))
        assert not report.failed(), report
        return report

    def states(self) -> dict[str, str]:
        """Return the states of Ana's memories by their texts."""
        with closing(Curator(self.settings, SYSTEM)) as curator:
            return {memory.text: memory.state for memory in curator.read()[0].values()}

    def ids(self) -> dict[str, str]:
        """Return the ids of Ana's memories by their texts."""
        with closing(Curator(self.settings, SYSTEM)) as curator:
            return {memory.text: memory.name for memory in curator.read()[0].values()}

    def block(self) -> str:
        """Return what the provider gives to a prompt of Ana's that asks for everything."""
        self._asked += 1  # an answer to the very same question may still be warm
        question = f"Where does Ana park, what is the gate code, what are stamps? {self._asked}"
        found = preview_prompt(self.settings, question, Asker(user="ana"))
        return "\n".join(item.text for item in found.items if item.provider == NAME)

    def events(self) -> list[MemoryCurated]:
        """Return the curator's events in the log."""
        return [one for one in self.logged() if isinstance(one, MemoryCurated)]

    def logged(self) -> list[Any]:
        """Return all events."""
        with closing(journal.open_history(self.settings)) as history:
            found = journal.newest_events(history, journal.EventSelection(), 500)
        return [one.envelope.event for one in found]
