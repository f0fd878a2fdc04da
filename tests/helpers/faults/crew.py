"""Worker processes of one run: started, killed, started again; every death is accounted for."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec
from memorybus.config.settings import Settings, to_environ
from memorybus.ids import new_mark
from memorybus.registry.reclaim import reclaim_lanes
from memorybus.registry.roster import worker_id

from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until

TESTS = Path(__file__).parents[2]
PATH = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))
"""Where processes find these helpers, and the sources of a sabotaged copy before the installed."""
READY = '"ready":true'
START = 60.0
"""Seconds that a worker may take to be ready on a busy machine."""


class Member(msgspec.Struct, eq=False):
    """One worker process, and the crash point that it was sent to (empty: none)."""

    child: Child
    crash: str = ""

    @property
    def pid(self) -> int:
        """Its process id, by which leases and effects know it."""
        return self.child.pid

    @property
    def ready(self) -> bool:
        """Whether it has said so."""
        return READY in self.child.output()


class Crew:
    """The workers of one run.

    Args:
        spawn: starts processes.
        settings: the workers' settings.
        within: words before the worker's own, for a process that changes its surroundings first.
        env: what to add to the environment.
    """

    def __init__(
        self,
        spawn: Spawn,
        settings: Settings,
        within: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.members: list[Member] = []
        self._spawn = spawn
        self._settings = settings
        self._within = within
        self._env = dict(env or {})
        self._mark = new_mark()

    def start(self, count: int = 1, crash: str = "") -> list[Member]:
        """Start workers; do not wait for them."""
        found = [Member(self._child(crash), crash) for _ in range(count)]
        self.members += found
        return found

    def _child(self, crash: str) -> Child:
        env = to_environ(self._settings, {}) | {"PYTHONPATH": PATH} | self._env
        if crash:
            env["MEMORYBUS_CRASH_AT"] = crash
        words = ("-m", "memorybus_workers", "worker", "--jobs", "0", "--mark", self._mark)
        return self._spawn(*self._within, *words, env=env)

    def wait_ready(self) -> None:
        """Wait until all have said so."""
        wait_until(lambda: all(m.ready for m in self.checked()), "all workers are ready", START)

    def checked(self) -> list[Member]:
        """Return the members; fail if one without a task has died."""
        for member in self.members:
            if not member.crash and not member.child.alive:
                raise AssertionError(
                    f"a worker ended with {member.child.exit_code}: {member.child.output()[-2000:]}"
                )
        return self.members

    def bury(self) -> list[Member]:
        """Take out those that died on their task, and return them; any other death fails."""
        dead = [m for m in self.checked() if not m.child.alive]
        for member in dead:
            self.members.remove(member)
            assert member.child.exit_code == -9, (
                f"{member.crash}: ended with {member.child.exit_code}: "
                f"{member.child.output()[-2000:]}"
            )
        return dead

    def replace_dead(self) -> int:
        """Bury each that ended by itself and start another, as their supervisor would."""
        dead = [m for m in self.members if not m.child.alive]
        for member in dead:
            self.members.remove(member)
            reclaim_lanes(self._settings, worker_id(member.pid, self._mark))
        self.start(len(dead))
        return len(dead)

    def kill(self, member: Member) -> None:
        """SIGKILL one, and take it out."""
        self.members.remove(member)
        member.child.kill()

    def dismiss(self, member: Member, timeout: float = 45.0) -> int:
        """SIGTERM one and take it out; return its exit code."""
        self.members.remove(member)
        return member.child.terminate(timeout)

    def stop(self) -> None:
        """End all in order, at once.

        One that was started a moment ago does not listen to signals yet: SIGTERM would kill it.
        """
        for member in self.checked():
            member.child.thaw()
        self.wait_ready()
        members, self.members = self.members, []
        for member in members:
            member.child.send(signal.SIGTERM)
        for member in members:
            assert member.child.wait() == 0, member.child.output()[-2000:]
