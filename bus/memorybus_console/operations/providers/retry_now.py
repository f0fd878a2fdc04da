"""``memorybus provider retry-now``: retries at once what waits for its next try."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.dead_letters.records import LetterRequest
from memorybus.health.monitor import read_status
from memorybus.health.status import ProviderStatus
from memorybus.ids import NewId, new_id
from memorybus.registry.instances import RetryRequest

from memorybus_console.operations.dead_letters import OperatorDecision, build_requests
from memorybus_console.operations.providers.lifecycle import resolve_instance
from memorybus_console.operations.stores import Stores
from memorybus_console.result import Remark, Result


class RetryNow(Result, frozen=True):
    """A retry of everything that waits for another try at an instance.

    Attributes:
        serves: the provider that was named, if the instance is a generation that serves it.
        failing: how its calls fail; "" if they do not.
        parked: how many dead letters are applied again, too; 0 if that was not asked for.
    """

    name: str
    serves: str
    failing: str
    backlog: int
    parked: int
    workers: int
    executed: bool = False

    def headline(self) -> str:
        """Return what is retried, and what waits for it."""
        who = f"{self.name}, which serves {self.serves}," if self.serves else self.name
        verb = "is retried now" if self.executed else "would be retried now"
        letters = f", with {self.parked} dead letters" if self.parked else ""
        return f"{who} {verb}{letters}: {self.backlog} events wait for it"

    def notes(self) -> Iterator[Remark]:
        """Yield how its calls failed, and what to do next."""
        if self.failing:
            yield Remark(f"its calls failed: {self.failing}")
        if not self.workers:
            yield Remark("no worker serves it; start one: memorybus up", "yellow")
        if self.executed:
            yield Remark("to watch its progress: memorybus status --watch")


def plan_retry(stores: Stores, name: str, *, parked: bool) -> RetryNow:
    """Return what `retry_now` would do; change nothing.

    Raises:
        ConfigError: the instance is unknown.
    """
    live = resolve_instance(stores, name)
    found = read_status(stores.settings)
    status = next(
        provider for provider in (*found.providers, *found.copies) if _is_status_of(provider, live)
    )
    workers = [worker for worker in stores.roster.alive() if live in worker.providers]
    return RetryNow(
        name=live,
        serves=name if name != live else "",
        failing=status.failing,
        backlog=status.backlog,
        parked=len(_letters_of(stores, live)) if parked else 0,
        workers=len(workers),
    )


def _is_status_of(status: ProviderStatus, instance: str) -> bool:
    return (status.live or status.name) == instance


def retry_now(
    stores: Stores, what: RetryNow, by: str, *, clock: Clock = SYSTEM, ids: NewId = new_id
) -> RetryNow:
    """Let workers try at once what waits for another try, and dead letters if that is planned.

    This may be repeated: it does not interrupt a try that is running.

    Raises:
        TooManyRequests: there are more dead letters than may be requested at once.
    """
    stores.retry_requests.send(what.name, RetryRequest(ids(), by, clock.now_ms()))
    if what.parked:
        decision = OperatorDecision("retry", "", by, clock.now_ms(), {})
        requests = build_requests(decision, _letters_of(stores, what.name), ids)
        _send_requests(stores, what.name, [request for _, request in requests])
    return msgspec.structs.replace(what, executed=True)


def _letters_of(stores: Stores, instance: str) -> list[LocatedLetter]:
    with closing(DeadLetters(stores.settings)) as desk:
        return desk.letters([instance])


def _send_requests(stores: Stores, instance: str, requests: Sequence[LetterRequest]) -> None:
    with closing(DeadLetters(stores.settings)) as desk:
        desk.send(instance, requests)
