"""One round of deriving: what is due in a store is derived, published, and then settled."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.errors import Permanent, Unavailable
from memorybus.events import Derived, Scope, SessionRef
from memorybus.ids import derived_id
from memorybus.outbox.publisher import Publisher
from memorybus.redis.keys import store_key
from memorybus.testing import CrashPoint, no_crash
from memorybus.text.redact import describe_error
from memorybus_providers.deriving.deriver import Deriver, Due, Material, check
from memorybus_providers.deriving.model import BudgetSpent
from memorybus_providers.fact_provider import FactProvider

_log = logging.getLogger("memorybus")

MAX_DUE = 20
MAX_READ = 500
"""The most sessions of one round, and the most causes that are read for it (G10)."""

MAX_TRIES = 3
"""How often a process tries a cause whose deriver fails; then it leaves the cause."""

_FLUSH_SECONDS = 10.0


def derived_events(deriver: Deriver, material: Material) -> Iterator[tuple[str, Derived]]:
    """Yield what a deriver concludes, each with its id: once for each cause, kind and revision."""
    due, counts = material.due, Counter[str]()
    owner = (due.scope.agent, due.scope.user, due.scope.workspace)
    version = (deriver.name, deriver.revision)
    for conclusion in check(deriver.derive(material), material):
        number = counts[conclusion.kind]
        counts[conclusion.kind] += 1
        name = derived_id("derived", *owner, due.cause, *version, conclusion.kind, number)
        fields = msgspec.structs.asdict(conclusion)
        yield name, Derived(**fields, cause=due.cause, deriver=version[0], revision=version[1])


def newest_causes(dues: Sequence[Due]) -> list[Due]:
    """Return the newest cause of each session, which covers the earlier ones."""
    newest = {(due.scope, due.session): due for due in sorted(dues, key=lambda due: due.at)}
    return list(newest.values())


class Turn(Protocol):
    """What only one worker has: `memorybus.redis.locks.ExpiringLock`."""

    def keep(self) -> bool:
        """Take or prolong it; return False if another holder has it."""
        ...

    def holds(self) -> bool:
        """Return whether nobody else can have had it since `keep`."""
        ...


class DerivingRound:
    """Derives what is due. Belongs to one thread.

    Args:
        derivers: in the order in which they are asked.
        publisher: takes the conclusions.
        turn: prolonged before each session; without it nothing is derived or published.
        crash: crash points of fault tests: ``derive.concluded``, ``derive.published``,
            ``derive.logged`` and ``derive.settled``.
        clock: measures how long a deriver rests.
    """

    def __init__(
        self,
        derivers: Sequence[Deriver],
        publisher: Publisher,
        turn: Turn,
        crash: CrashPoint = no_crash,
        clock: Clock = SYSTEM,
    ) -> None:
        self._derivers = derivers
        self._publisher = publisher
        self._turn = turn
        self._crash = crash
        self._clock = clock
        self._tries = Counter[tuple[str, str]]()
        self._waiting: dict[str, str] = {}
        self._rested: dict[tuple[str, Scope, SessionRef], float] = {}

    def run(self, store: FactProvider) -> int:
        """Derive what is due for each deriver, at most `MAX_DUE` sessions; return the most settled.

        A cause is settled once Redis has its conclusions. Whatever ends the process before that,
        the next round derives it again, under the same ids (G2). Each deriver has a list of its
        own, so that a model which is down, or has spent its budget, holds up no other.

        Raises:
            ProviderError: the store cannot be read or written now.
            SpoolError: nothing can be published.
        """
        return max([self._run(deriver, store) for deriver in self._derivers], default=0)

    def _run(self, deriver: Deriver, store: FactProvider) -> int:
        dues = store.due(deriver.name, MAX_READ)
        sessions, spent = set[tuple[Scope, SessionRef]](), set[str]()
        able = (
            due
            for due in newest_causes(dues)
            if due.scope.user not in spent and self._is_rested(deriver, due)
        )
        for due in islice(able, MAX_DUE):
            try:
                if self._turn.keep() and self._conclude(deriver, store.material(due)):
                    sessions.add((due.scope, due.session))
            except Unavailable as error:  # its sessions stay due
                self._log_waiting(deriver, error)
                if not isinstance(error, BudgetSpent):
                    break
                spent.add(due.scope.user)  # another person may have a budget left
        done = [due for due in dues if (due.scope, due.session) in sessions]
        if not done:
            return 0
        self._crash("derive.published")
        if not self._publisher.flush("logged", _FLUSH_SECONDS):
            return 0
        self._crash("derive.logged")
        store.settle(deriver.name, done)
        self._crash("derive.settled")
        return len(done)

    def _is_rested(self, deriver: Deriver, due: Due) -> bool:
        """Return whether a session may be derived again; what is due earlier waits, uncounted."""
        now = self._clock.monotonic()
        self._rested = {name: until for name, until in self._rested.items() if until > now}
        return (deriver.name, due.scope, due.session) not in self._rested

    def _conclude(self, deriver: Deriver, material: Material) -> bool:
        """Publish what a deriver concludes; return False if the cause is to be tried again."""
        due = material.due
        try:
            events = list(derived_events(deriver, material))
        except Unavailable:
            raise
        except Exception as error:  # a deriver is code of others, or asks a service
            return self._is_left(deriver, due, error)
        if deriver.rest:
            until = self._clock.monotonic() + deriver.rest
            self._rested[deriver.name, due.scope, due.session] = until
        if not self._turn.holds():  # somebody may have been forgotten meanwhile
            return False
        self._crash("derive.concluded")
        for name, event in events:
            self._publish(name, event, due)
        return True

    def _publish(self, name: str, event: Derived, due: Due) -> None:
        self._publisher.publish(
            event,
            key=store_key("user", due.scope),
            scope=due.scope,
            session=due.session,
            event_id=name,
            at=due.at,
        )

    def _log_waiting(self, deriver: Deriver, error: Unavailable) -> None:
        if self._waiting.get(deriver.name) != str(error):
            _log.warning("the deriver %s waits: %s", deriver.name, describe_error(error))
        self._waiting[deriver.name] = str(error)

    def _is_left(self, deriver: Deriver, due: Due, error: Exception) -> bool:
        tries = self._tries[deriver.name, due.cause] + 1
        left = tries >= MAX_TRIES or isinstance(error, Permanent)
        self._tries[deriver.name, due.cause] = tries
        if left:
            del self._tries[deriver.name, due.cause]
        _log.warning(
            "the deriver %s failed for event %s, which is %s: %s",
            deriver.name,
            due.cause,
            "left" if left else "tried again",
            describe_error(error),
        )
        return left
