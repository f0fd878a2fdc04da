"""One round of deriving: what is due in a store is derived, published, and then settled."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
from memorybus.events import Derived
from memorybus.ids import derived_id
from memorybus.outbox.publisher import Publisher
from memorybus.redis.keys import store_key
from memorybus.testing import CrashPoint, no_crash
from memorybus.text.redact import describe_error
from memorybus_providers.deriving.deriver import Deriver, Due, Material, check
from memorybus_providers.fact_provider import FactProvider

_log = logging.getLogger("memorybus")

MAX_DUE = 20
"""The most causes of one round (G10)."""

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


class DerivingRound:
    """Derives what is due. Belongs to one thread.

    Args:
        derivers: in the order in which they are asked.
        publisher: takes the conclusions.
        keep_turn: called before each session; returns False if another worker derives now.
        crash: crash points of fault tests: ``derive.concluded``, ``derive.published``,
            ``derive.logged`` and ``derive.settled``.
    """

    def __init__(
        self,
        derivers: Sequence[Deriver],
        publisher: Publisher,
        keep_turn: Callable[[], bool],
        crash: CrashPoint = no_crash,
    ) -> None:
        self._derivers = derivers
        self._publisher = publisher
        self._keep_turn = keep_turn
        self._crash = crash
        self._tries = Counter[str]()

    def run(self, store: FactProvider) -> int:
        """Derive what is due, at most `MAX_DUE` causes; return how many were settled.

        A cause is settled once Redis has its conclusions. Whatever ends the process before that,
        the next round derives it again, under the same ids (G2).

        Raises:
            ProviderError: the store cannot be read or written now.
            SpoolError: nothing can be published.
        """
        dues = store.due(MAX_DUE)
        failed = {
            (due.scope, due.session)
            for due in newest_causes(dues)
            if not (self._keep_turn() and self._conclude(store.material(due)))
        }
        done = [due for due in dues if (due.scope, due.session) not in failed]
        if not done:
            return 0
        self._crash("derive.published")
        if not self._publisher.flush("logged", _FLUSH_SECONDS):
            return 0
        self._crash("derive.logged")
        store.settle(done)
        self._crash("derive.settled")
        return len(done)

    def _conclude(self, material: Material) -> bool:
        """Publish what all derivers conclude; return False if the cause is to be tried again."""
        for deriver in self._derivers:
            try:
                events = list(derived_events(deriver, material))
            except Exception as error:  # a deriver is code of others, or asks a service
                return self._is_left(deriver, material.due, error)
            self._crash("derive.concluded")
            for name, event in events:
                self._publish(name, event, material.due)
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

    def _is_left(self, deriver: Deriver, due: Due, error: Exception) -> bool:
        self._tries[due.cause] += 1
        left = self._tries[due.cause] >= MAX_TRIES
        if left:
            del self._tries[due.cause]
        _log.warning(
            "the deriver %s failed for event %s, which is %s: %s",
            deriver.name,
            due.cause,
            "left" if left else "tried again",
            describe_error(error),
        )
        return left
