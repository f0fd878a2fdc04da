"""A trial of an instance: it is opened as in a worker, written to, asked, and made to forget."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import MissingProvider, Permanent, ProviderError, Unavailable
from memorybus.events import (
    Event,
    MemoryWritten,
    Position,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    TurnCompleted,
)
from memorybus.ids import NewId
from memorybus.processes.reports import TrialStep, TrialTerms
from memorybus.text.redact import describe_error
from memorybus_providers.base import (
    Fence,
    HookContext,
    MemoryProvider,
    Progress,
    RecallContext,
    RecallScope,
    Recollection,
    TransactionalProvider,
)
from memorybus_providers.dispatch import bind

SCOPE: Final = Scope(TrialTerms().agent, TrialTerms().user)
"""The owner of the memories that a trial writes: an agent and a user that do not exist."""

LANE: Final = "test"
"""The lane of its transactions. Workers do not use it: their lanes are called ``p00`` and so on."""

_POLL_SECONDS = 0.1  # seconds between two questions for the memory that was just written
HANG_SECONDS: Final = 30.0
"""Seconds, above all time limits, after which a step and the thread that runs it are abandoned."""


class TrialFailed(ProviderError):
    """A step did not succeed; the message says what was observed."""


class NotClaimed(ProviderError):
    """The provider does not claim to do what a step tries."""


class Trial:
    """The steps of a trial. They run in one thread, like a worker's lane."""

    def __init__(
        self,
        make: Callable[[], MemoryProvider],
        settings: Settings,
        clock: Clock,
        make_id: NewId,
        wait: float,
        scope: Scope = SCOPE,
    ) -> None:
        self._scope = scope
        self.settings = settings
        self.clock = clock
        self._make = make
        self._deadline = settings.call_timeout
        self._make_id = make_id
        self._wait = wait
        self._word = f"kestrel-{make_id()[-8:]}"
        self._opened: list[MemoryProvider] = []

    def steps(self) -> Sequence[tuple[str, Callable[[], str]]]:
        """Return the steps by name, in their order; each returns its result in words, or raises."""
        return (
            ("open", self._open),
            ("write", self._write),
            ("recall", self._recall),
            ("forget", self._forget),
        )

    def close(self) -> None:
        while self._opened:
            with suppress(Exception):  # the steps have already reported what is wrong
                self._opened.pop().shutdown()

    def _open_another(self) -> MemoryProvider:
        made = self._make()
        self._opened.append(made)
        made.open()
        return made

    def _open(self) -> str:
        made = self._open_another()
        if said := made.health(self._deadline):
            raise TrialFailed(said)
        note = f"; {made.note}" if made.note else ""
        return f"{made.kind}, {made.delivery}, {made.placement}{note}"

    def _write(self) -> str:
        writer = self._opened[0]
        events = _events(self._word, writer.capabilities.handles)
        if not events:
            raise NotClaimed("it handles no turns")
        ids = [self._make_id() for _ in events]
        if isinstance(writer, TransactionalProvider):
            self._commit(writer, events, ids)
        else:
            self._call(writer, events, ids)
        what = " and ".join(type(event).__name__ for event in events)
        owner = f"agent {self._scope.agent}, user {self._scope.user}"
        return f"{what} ({owner})"

    def _commit(
        self, writer: TransactionalProvider, events: Sequence[Event], ids: Sequence[str]
    ) -> None:
        known = writer.progress(LANE)
        epoch = known.epoch if known else 1
        with writer.transaction(Fence(LANE, epoch)) as transaction:
            self._call(writer, events, ids)
            transaction.record(ids, Progress(epoch, "0-0", 0))

    def _call(self, writer: MemoryProvider, events: Sequence[Event], ids: Sequence[str]) -> None:
        apply, session = bind(writer), SessionRef(self._word, self._word)
        for n, (event, event_id) in enumerate(zip(events, ids, strict=True), 1):
            at, begun = self.clock.now_ms(), self.clock.monotonic()
            position = Position(0, f"{at}-{n}", n)
            context = HookContext(self._scope, session, event_id, position, at, self._deadline)
            apply(event, context)
            if (seconds := self.clock.monotonic() - begun) > self._deadline:
                raise TrialFailed(
                    f"{type(event).__name__} took {seconds:.1f} s: a worker abandons a call after "
                    f"call_timeout ({self._deadline:g} s)"
                )

    def _recall(self) -> str:
        can = self._opened[0].capabilities
        if not (can.recall and can.handles & {TurnCompleted, MemoryWritten}):
            raise NotClaimed("it recalls nothing, or handles no turns")
        asked, until = self._open_another(), self.clock.monotonic() + self._wait
        while True:
            found = self._ask(asked)
            if self._is_known(found):
                return f"found among {len(found)}"
            if self.clock.monotonic() >= until:
                break
            self.clock.sleep(_POLL_SECONDS)
        raise TrialFailed(
            f"what was written is not among the {len(found)} memories recalled, after "
            f"{self._wait:g} s"
        )

    def _forget(self) -> str:
        if self._scope != SCOPE:
            return f"not asked, since it would take all of {self._scope.user}: a turn stays"
        if not self._opened[0].capabilities.forgets:
            raise NotClaimed(f"what was written stays, under agent and user {SCOPE.user}")
        asked = self._opened[-1]
        residue = asked.forget(RecallScope.own(SCOPE))
        if asked.capabilities.recall and self._is_known(self._ask(asked)):
            raise TrialFailed("what was written is recalled in spite of it")
        count = "all" if residue.erased is None else residue.erased
        return "; ".join((f"{count} erased", *residue.remains))

    def _is_known(self, recollections: Sequence[Recollection]) -> bool:
        return any(self._word in recollection.text for recollection in recollections)

    def _ask(self, asked: MemoryProvider) -> Sequence[Recollection]:
        context = RecallContext(scope=RecallScope.own(self._scope), deadline=self._deadline)
        return asked.prefetch(f"Which boat is called {self._word}?", context)


def _events(word: str, handles: frozenset[type[Event]]) -> list[Event]:
    said = f"My boat is called {word}."
    kept = MemoryWritten(action="add", store="user", content=said)
    turn = TurnCompleted(user=said, assistant=f"A fine name for a boat, {word}.", ordinal=0)
    middle = turn if TurnCompleted in handles else kept
    events = (SessionStarted(), middle, SessionEnded(reason="test", message_count=2))
    return [event for event in events if type(event) in handles]


def run_trial(trial: Trial, name: str, hung: float = HANG_SECONDS) -> Iterator[TrialStep]:
    """Yield each step when it is done; after a failed one only the step ``forget`` still runs."""
    done: queue.SimpleQueue[TrialStep | None] = queue.SimpleQueue()
    threading.Thread(target=_run_steps, args=(trial, name, done), daemon=True).start()
    left = [step for step, _ in trial.steps()]
    while True:
        try:
            step = done.get(timeout=hung)
        except queue.Empty:
            fix = "see whether the backend answers at all, and its own log"
            yield TrialStep(left[0], ok=False, seconds=hung, found="no end in sight", fix=fix)
            return
        if step is None:
            return
        left.remove(step.name)
        yield step


def _run_steps(trial: Trial, name: str, done: "queue.SimpleQueue[TrialStep | None]") -> None:
    try:
        failed = ""
        for step, act in trial.steps():
            if failed and (step != "forget" or failed == "open"):
                continue
            told = _run_step(trial, step, act, name)
            done.put(told)
            failed = failed or ("" if told.ok else step)
    finally:
        trial.close()
        done.put(None)


def _run_step(trial: Trial, step: str, act: Callable[[], str], name: str) -> TrialStep:
    begun, claimed = trial.clock.monotonic(), True
    try:
        ok, found, fix = True, act(), ""
    except NotClaimed as error:
        ok, claimed, found, fix = True, False, f"not claimed: {error}", ""
    except TrialFailed as error:
        ok, found, fix = False, str(error), advice(error, step, name)
    except Exception as error:
        said = describe_error(error, trial.settings.secrets)
        ok, found, fix = False, said, advice(error, step, name)
    return TrialStep(step, ok, round(trial.clock.monotonic() - begun, 4), found, fix, claimed)


def advice(error: Exception, step: str, name: str) -> str:
    again = f"then: memorybus provider test {name}"
    if isinstance(error, MissingProvider):
        return f"install what is missing; {again}"
    if isinstance(error, TrialFailed):
        longer = f"memorybus provider test {name} --wait 60"
        return f"if it needs time to think it over: {longer}" if step == "recall" else ""
    if isinstance(error, Permanent):
        return f"if it serves one person alone: memorybus provider test {name} --user NAME"
    if isinstance(error, Unavailable | OSError):
        return f"start its backend, or correct where it is: memorybus provider setup {name}"
    return f"correct its options or secrets: memorybus provider setup {name}; {again}"
