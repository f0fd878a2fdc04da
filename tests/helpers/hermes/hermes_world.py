"""All that a scenario of the real Hermes needs: model, Redis, workers, a home with the plugin."""

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Any

from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus.events import Envelope, Event, TurnCompleted
from memorybus.health.monitor import spool_status
from memorybus.log.stream import EventLog
from memorybus.redis.connect import connect_redis

from helpers.hermes.hermes_agent import LONG_WORDS, PYTHON, VENV, Hermes, Home
from helpers.hermes.hermes_model import Model
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.redis.servers import RedisServer
from helpers.stories.scenario import worker

MEMORYBUS = VENV / "bin" / "memorybus"
TIMINGS: dict[str, Any] = {"spool_keep": 0.2, "recall_wait": 2.0, "prefetch_deadline": 0.5}
TIMINGS["derivers"] = ()  # an event that no test published would be counted


class World:
    """One person's machine: close it after use.

    Attributes:
        server: the Redis of the log.
        settings: what Hermes's processes, workers and this test read from their environment.
        model: the scripted model.
        home: the HERMES_HOME.
        spawn: starts workers and other processes of this project.
    """

    def __init__(self, *, plugin: str = "memorybus", **settings: Any) -> None:
        """Make everything but workers and Hermes's processes.

        Args:
            plugin: the memory provider that Hermes shall use; "" for none.
            settings: settings besides the short timings.
        """
        self.directory = Path(tempfile.mkdtemp(prefix="mb-h-"))
        self._mark = uuid.uuid4().hex
        self.server = RedisServer()
        self.server.start()
        given = {"url": self.server.url, "data_dir": self.directory / "data", **TIMINGS, **settings}
        self.settings = Settings(**given)
        self.model = Model().__enter__()
        self.spawn = Spawn(self.directory, self._mark, self.directory / "data")
        self._running: list[Hermes] = []
        self.home = self.make_home("home", plugin)

    def make_home(self, name: str, plugin: str) -> Home:
        """Make another HERMES_HOME on the same bus."""
        env = to_environ(self.settings, {})
        home = Home(self.directory / name, self.model.url, self._mark, env)
        home.config["memory"]["provider"] = plugin
        home.write_config()
        if plugin == "memorybus":
            self.memorybus("hermes", "install", "--home", home.path, "--python", PYTHON)
        return home

    def memorybus(self, *words: str | Path, code: int = 0) -> str:
        """Run this project's command in the Python of Hermes; it must end with this exit code."""
        env = {**os.environ, **to_environ(self.settings, {}), "HOME": str(self.directory)}
        run = [MEMORYBUS, *map(str, words)]
        done = subprocess.run(run, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def hermes(self, home: Home | None = None, **options: Any) -> Hermes:
        """Start a process of Hermes; the toolset is the memory's unless given."""
        found = Hermes(home or self.home, **{"toolsets": ["memory"], **options})
        self._running.append(found)
        return found

    @property
    def change(self) -> str:
        """The action by which this release's memory tool changes an entry; after a request."""
        told = self.model.requests[-1].descriptions["memory"]
        return "patch" if "patch" in told else "replace"

    def reconcile(self) -> dict[str, Any]:
        """Run ``memorybus hermes reconcile --apply``; no Hermes runs, so nothing need settle."""
        words = ("--apply", "--settle", "0", "--json", "--home", self.home.path)
        found: dict[str, Any] = json.loads(self.memorybus("hermes", "reconcile", *words))
        return found

    def compress_twice_and_resume(self, hermes: Hermes) -> list[str]:
        """Have long turns with two compressions in place, undo the last one, and resume.

        Another process resumes the session and has one more turn. Return what was said before.
        """
        said = [f"part {number}: {LONG_WORDS}" for number in range(15)]
        for text in said[:12]:
            hermes.chat(text)
        hermes.slash("/compress")
        for text in said[12:]:
            hermes.chat(text)
        hermes.slash("/compress")
        hermes.slash("/undo")
        hermes.do("settle")
        hermes.leave()
        resumed = self.hermes(resume=hermes.session)
        resumed.chat("after the resume")
        resumed.do("settle")
        resumed.leave()
        self.drain()
        return said

    def drain(self) -> None:
        """Send what dead processes left, as any later process of this host does."""
        bus = MemoryBus.connect(self.settings)
        try:
            wait_until(lambda: not spool_status(self.settings).events, "all spools are empty", 60)
            assert bus.flush("logged", 60)
        finally:
            bus.close(30)  # also the adopter of many spools shall be through with them

    def worker(self, jobs: int = 1) -> Child:
        """Start a worker, and wait until its recall processes, if it has any, answer.

        They start when a recall is first asked for, one provider's sooner than another's: without
        this, what the first turns are told would depend on which was sooner.
        """
        child = worker(self.spawn, self.settings, jobs=jobs)
        if jobs:
            wait_until(self._all_recall, "every provider answers recalls", 60)
        return child

    def _all_recall(self) -> bool:
        with MemoryBus.connect(self.settings) as bus:
            return not bus.recall("is anybody there?", timeout=30).missing

    def events(self, kind: type[Event] | None = None, session: str | None = None) -> list[Envelope]:
        """Return what is in the log: by time, and within a key in the log's order."""
        client = connect_redis(self.settings)
        try:
            log = EventLog(client, self.settings)
            pages = [log.read(p, count=100_000) for p in range(self.settings.partitions)]
        finally:
            client.close()
        found = [event.envelope for page in pages for event in page]
        wanted = [
            e
            for e in found
            if (kind is None or isinstance(e.event, kind)) and session in (None, e.session.id)
        ]
        return sorted(wanted, key=lambda e: e.at)

    def turns(self, session: str | None = None) -> list[str]:
        """Return what people said in the turns of the log."""
        return [
            e.event.user
            for e in self.events(TurnCompleted, session)
            if isinstance(e.event, TurnCompleted)
        ]

    def wait_turns(self, session: str, *said: str) -> None:
        """Wait until a session's turns in the log are these, in this order."""
        wait_until(lambda: self.turns(session) == list(said), f"the log has {said}", 60)

    def wait_events(self, kind: type[Event], session: str, count: int = 1) -> list[Envelope]:
        """Wait until a session has so many events of a kind in the log."""

        def enough() -> list[Envelope]:
            found = self.events(kind, session)
            return found if len(found) >= count else []

        return wait_until(enough, f"{count} {kind.__name__} of {session}", 60)

    def close(self) -> None:
        """End and delete everything; nobody may have reached beyond this host."""
        for process in self._running:
            if process.alive:
                process.kill()
        self.spawn.end_all()
        self.model.__exit__()
        self.server.remove()
        outside = [home.read_text() for home in self.directory.glob("*/outside.txt")]
        shutil.rmtree(self.directory, ignore_errors=True)
        assert not outside, f"somebody wanted to reach {outside}"
