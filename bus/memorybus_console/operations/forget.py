"""``memorybus forget``: erases a person, or an agent's memories, wherever they can be reached.

1. What ended processes of this host left in spools is sent, so that nothing comes later. A
   tombstone hides the events up to now from every reader, and another one the records of what
   prompts of other people were given of them. No replay and no rebuild brings them
   back, and the archive drops their bytes.
2. We wait until the lanes have passed these events, so that none is on its way to a provider.
3. Each instance erases its state and names what it cannot reach.
4. Warm results of everybody, replies and dead letters are removed: another person may have been
   shown what this person's session wrote to the agent's store. Then the entries of the log are
   removed, as far as they are sealed.
5. The files of Redis and of this host's agents are rewritten.

Every step may be repeated: a second run of the command finishes what the first one left.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec
from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.dead_letters.records import LetterRequest
from memorybus.errors import ConfigError, LogError
from memorybus.events import Recalled, Scope, SessionRef
from memorybus.history.history import History
from memorybus.ids import new_id
from memorybus.jobs.inspect import Erase, EraseReport, InspectionFailed, InstanceInspector
from memorybus.log.removal import Removed, remove_entries, rewrite_redis_files
from memorybus.processes.commands import EndedSilently, run_archiver
from memorybus.query.filter import Matcher
from memorybus.query.query import Query, row_of
from memorybus.recall.model import RecallRequest
from memorybus.recall.retractions import purge_answers, purge_sessions
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys
from memorybus.redis.locks import ExpiringLock
from memorybus.registry.instances import InstancesView
from memorybus.text.display import count_text
from memorybus_workers.hosting.instances import deriving_provider

from memorybus_console.operations import leftovers
from memorybus_console.operations.archive import open_archive
from memorybus_console.operations.dead_letters import (
    await_requests,
    send_requests,
)
from memorybus_console.operations.moments import await_lanes
from memorybus_console.operations.stores import Stores, checked_stores
from memorybus_console.result import Column, Remark, Result

_MORE_SECONDS = 60.0  # of the lock that keeps workers from deriving, beyond all waiting
LOOK_EVERY = 0.2  # seconds until an instance that could not be asked is asked again

OUT_OF_REACH: Final = (
    "agents on other hosts may still send events from their spools: run forget again then",
    "replaced segments of the archive: deleted within an hour",
    "system prompts that other hosts have noted, for 30 days at most: run this there, too",
    "deleted entries in Redis's memory and files, until the last neighbour goes (the hot window)",
    "snapshots (RDB) that Redis has written: redis-cli bgsave",
    "a tombstone and the record of this act, with the person's id: replays skip the events by it",
    "backups of Redis, of the archive and of providers, exports, and logs of other programs",
)
"""What no command of the bus can reach, in any installation."""


class ErasureOwner(msgspec.Struct, frozen=True):
    """The owner of the memories to erase; a field that is None stands for any."""

    user: str | None = None
    agent: str | None = None
    workspace: str | None = None

    def query(self, upto: int = 0) -> Query:
        """Return the query for their events up to a time (milliseconds; 0 for all).

        Raises:
            ConfigError: nobody is named.
        """
        users, agents, workspaces = map(_as_tuple, (self.user, self.agent, self.workspace))
        if not (users or agents or workspaces):
            raise ConfigError("name whom to forget: --user, --agent or --workspace")
        return Query(users=users, agents=agents, workspaces=workspaces, upto=upto)

    def owns(self, scope: Scope) -> bool:
        asked = ((self.user, scope.user), (self.agent, scope.agent))
        here = self.workspace in (None, scope.workspace)
        return here and all(want is None or want == owned for want, owned in asked)


def _as_tuple(word: str | None) -> tuple[str, ...]:
    return () if word is None else (word,)


class FoundHistory(msgspec.Struct, frozen=True):
    """What the history holds of an owner."""

    events: int
    sessions: frozenset[tuple[Scope, SessionRef]]
    newest: int  # when the newest event happened, milliseconds; 0 for none

    @property
    def session_count(self) -> int:
        return len({(scope, session.id) for scope, session in self.sessions})


class ErasurePlan(msgspec.Struct, frozen=True):
    """What an erasure would reach."""

    owner: ErasureOwner
    found: FoundHistory  # what the history holds of the owner
    instances: dict[str, str]  # the instances that are asked to erase, each with its provider
    letters: list[LocatedLetter]


class InstanceErasure(msgspec.Struct, frozen=True):
    """What became of an erasure in one instance.

    Attributes:
        erased: how many memories it erased; None if it does not say.
        remains: what it could not reach, in words.
        problem: why it did not erase; "" if it did.
    """

    name: Annotated[str, Column("provider")]
    erased: int | None = None
    remains: Annotated[tuple[str, ...], Column("left", wraps=True)] = ()
    problem: Annotated[str, Column(wraps=True, style="red")] = ""


class PlannedErasure(Result, frozen=True):
    """How much an erasure would reach."""

    events: int
    sessions: int
    letters: int
    instances: list[str]
    executed: bool = False

    def headline(self) -> str:
        sessions, letters = (
            count_text(self.sessions, "session"),
            count_text(self.letters, "dead letter"),
        )
        asked = ", ".join(self.instances) or "none"
        return (
            f"would hide {count_text(self.events, 'event')} of {sessions} for good, and discard "
            f"{letters}\nproviders that will erase: {asked}"
        )

    def is_plan(self) -> bool:
        return True


class Erasure(Result, frozen=True):
    """What an erasure did; its ``--json``.

    Attributes:
        tombstone: the tombstone's id; "" if there was nothing to hide.
        sessions: how many sessions had their warm results removed.
        log: which entries were removed from the log in Redis.
        remains: what is left in other places, in words.
        problems: what could not be done; the command may be run again.
    """

    tombstone: str
    events: int
    sessions: int
    letters: int
    log: Removed
    instances: list[InstanceErasure]
    remains: list[str]
    problems: list[str]
    executed: bool = True

    def headline(self) -> str:
        return (
            f"{self.events} events are hidden; {self.log.gone} entries of the log and "
            f"{self.letters} dead letters are gone"
        )

    def notes(self) -> Iterator[Remark]:
        yield from (Remark(problem, "red") for problem in self.problems)
        yield from (Remark(f"remaining: {place}", "yellow") for place in self.remains)

    def failed(self) -> bool:
        return bool(self.problems) or any(instance.problem for instance in self.instances)


def plan_erasure(settings: Settings, owner: ErasureOwner) -> ErasurePlan:
    """Return what an erasure would reach; change nothing.

    Raises:
        ConfigError: nobody is named.
    """
    query = owner.query()
    with checked_stores(settings) as stores:
        history = _find_history(stores, query)
        view = stores.instances.read_view()
    with closing(DeadLetters(settings)) as desk:
        all_letters = desk.letters(desk.providers())
    letters = [dead for dead in all_letters if owner.owns(dead.stored.letter.scope)]
    return ErasurePlan(owner, history, _instances_asked(settings, view), letters)


def _find_history(stores: Stores, query: Query) -> FoundHistory:
    events, newest, sessions = 0, 0, set[tuple[Scope, SessionRef]]()
    for event in stores.history.scan(query):
        envelope = event.envelope
        events, newest = events + 1, max(newest, envelope.at)
        sessions.add((msgspec.structs.replace(envelope.scope, platform=""), envelope.session))
    return FoundHistory(events, frozenset(sessions), newest)


def _others_records(history: History, plan: ErasurePlan) -> Query | None:
    """Return the records of what other people's prompts were given of the owner; None for none.

    A memory without a known event counts as the owner's if the owner spoke to the same agent.
    """
    agents = {scope.agent for scope, _ in plan.found.sessions}
    shown: dict[str, set[str]] = {}
    for event in history.scan(Query(types=(Recalled.__name__,))):
        envelope, record = event.envelope, event.envelope.event
        if isinstance(record, Recalled) and not plan.owner.owns(envelope.scope):
            unknown = {""} if envelope.scope.agent in agents else set()
            events = {each for part in record.memories for each in part.events}
            shown[envelope.id] = (events - {""}) | (events & unknown)
    named = tuple(sorted(set().union(*shown.values()) - {""}))
    own = msgspec.structs.replace(plan.owner.query(), ids=named)
    gone = {event.envelope.id for event in history.scan(own)} if named else set()
    ids = tuple(sorted(record for record, events in shown.items() if events & (gone | {""})))
    return Query(ids=ids) if ids else None


def _instances_asked(settings: Settings, view: InstancesView) -> dict[str, str]:
    copies = {
        instance.name: instance.provider for instance in view.all.values() if not instance.dropped
    }
    return {name: name for name in settings.providers} | copies


@dataclass
class Eraser:
    """Carries an erasure out.

    Args:
        wait: seconds to wait for the lanes, for each instance and for dead letters.
    """

    settings: Settings
    wait: float
    step: Callable[[str], None]
    clock: Clock = SYSTEM
    problems: list[str] = field(default_factory=list, init=False)

    def erase(self, plan: ErasurePlan, reason: str, by: str) -> Erasure:
        """Carry the plan out; a part that fails is reported, and the other parts are done.

        Raises:
            ArchiveError: the tombstone cannot be written; nothing was erased.
            LogError: Redis is away; the command has to be run again.
        """
        with self._nobody_deriving():
            self.step("spools")
            leftovers.send_spools(self.settings, self.clock)  # now, and not after the erasure
            tombstone = self._hide(plan, reason, by)
            self._await_lanes(plan.instances)
            instances = [self._erase_in(plan.owner, *pair) for pair in plan.instances.items()]
        self._purge(plan)
        self._discard(plan.letters, reason, by)
        self._compact()
        log = self._remove() if not self.problems else Removed()
        left = self._rewrite_files(plan.found)
        return Erasure(
            tombstone=tombstone,
            events=plan.found.events,
            sessions=plan.found.session_count,
            letters=len(plan.letters),
            log=log,
            instances=instances,
            remains=[*_describe_unsealed(log, self.settings), *left, *OUT_OF_REACH],
            problems=self.problems,
        )

    @contextmanager
    def _nobody_deriving(self) -> Iterator[None]:
        """Keep workers from publishing what they conclude of the memories that are erased."""
        self.step("deriving")
        seconds = (3 + len(self.settings.providers)) * self.wait + _MORE_SECONDS
        provider = deriving_provider(self.settings)
        with closing(connect_redis(self.settings)) as redis:
            key = Keys(self.settings.namespace).deriving(provider)
            lock = ExpiringLock(redis, key, new_id().encode(), round(seconds * 1000))
            until = self.clock.monotonic() + self.wait
            while not (kept := lock.keep()) and self.clock.monotonic() < until:
                self.clock.sleep(LOOK_EVERY)
            if not kept:
                self.problems.append(
                    "a worker derives conclusions now, perhaps from these memories: run this again "
                    "when it has ended (within minutes)"
                )
            try:
                yield
            finally:
                with suppress(LogError):  # then it expires
                    lock.end()

    def _hide(self, plan: ErasurePlan, reason: str, by: str) -> str:
        """Write the tombstone if there is anything to hide; return its id, or ""."""
        self.step("tombstone")
        if not plan.found.events:
            return ""
        now = self.clock.now_ms()
        query = plan.owner.query(upto=max(now, plan.found.newest))
        tombstone = Tombstone(id=new_id(), query=query, reason=reason, at=now, by=by)
        with Stores(self.settings) as stores:
            records = _others_records(stores.history, plan)
        with closing(open_archive(self.settings)) as archive:
            archive.forget(tombstone)
            if records:
                archive.forget(Tombstone(id=new_id(), query=records, reason=reason, at=now, by=by))
        return tombstone.id

    def _await_lanes(self, instances: Collection[str]) -> None:
        """Wait until every lane that is not paused has passed what the log holds now."""
        self.step("lanes")
        with Stores(self.settings) as stores:
            moving = set(instances) - stores.instances.pauses().keys()
            behind = await_lanes(stores, moving, self.wait, self.clock)
        self.problems += [
            f"{name} has not applied {left} events that came before: what it makes of them later "
            "is not erased; run this again when it has caught up (memorybus status)"
            for name, left in behind.items()
        ]

    def _erase_in(self, owner: ErasureOwner, name: str, provider: str) -> InstanceErasure:
        """Ask one instance to erase; if it cannot be asked, try again until the time is up."""
        self.step(name)
        want = RecallRequest(
            query="", agent=owner.agent, user=owner.user, workspace=owner.workspace
        )
        until = self.clock.monotonic() + self.wait
        while True:
            try:
                inspector = InstanceInspector(self.settings, self.clock)
                return _describe_erasure(name, inspector.ask(provider, name, Erase(want)))
            except InspectionFailed as error:
                if self.clock.monotonic() >= until:
                    return InstanceErasure(name, problem=str(error))
                self.clock.sleep(LOOK_EVERY)

    def _purge(self, plan: ErasurePlan) -> None:
        """Remove what was recalled before, for anybody; it is recalled again."""
        self.step("warm results")
        purge_sessions(self.settings, plan.found.sessions, plan.instances)
        purge_answers(self.settings, set(plan.instances.values()))

    def _rewrite_files(self, history: FoundHistory) -> list[str]:
        """Rewrite the files in which bytes of the events may be; return what remains."""
        self.step("files")
        sessions = {(scope, session.id) for scope, session in history.sessions}
        return [
            *leftovers.erase_spools(self.settings, self.wait, self.clock),
            *leftovers.erase_host_notes(self.settings, sessions),
            *rewrite_redis_files(self.settings, self.wait, self.clock),
        ]

    def _discard(self, letters: Sequence[LocatedLetter], reason: str, by: str) -> None:
        """Ask the lanes' owners to discard dead letters, and wait for them."""
        self.step("dead letters")
        at = self.clock.now_ms()
        decision = LetterRequest("", 0, "discard", reason=reason, operator=by, at=at)
        with closing(DeadLetters(self.settings)) as desk:
            asked = send_requests(desk, decision, letters, new_id)
            waited = await_requests(
                *(desk, asked, self.clock),
                timeout=self.wait,
                ownerless=2 * self.settings.lease,
                progress=lambda _: None,
            )
        if waited.remaining:
            self.problems.append(
                f"{waited.remaining} requests for dead letters are not carried out yet; the "
                "owners of their lanes do so (memorybus dlq ls)"
            )

    def _compact(self) -> None:
        """Seal what may be sealed, and remove the hidden events' bytes from the segments."""
        self.step("archive")
        try:
            done = run_archiver(self.settings)
        except EndedSilently as error:
            self.problems.append(f"the archive may still have the bytes: {error}")
            return
        if done.hindered:
            errors = "; ".join(f"{name}: {why}" for name, why in done.errors.items())
            why = errors or "run `memorybus archive run` on its host"
            self.problems.append(f"the archive still has the bytes: {why}")

    def _remove(self) -> Removed:
        """Remove from the log what any tombstone hides, as far as it is sealed.

        The caller does not do so while a lane lags or the archive has a problem, because a lane
        that still needs these entries would look for them in the archive.
        """
        self.step("log")
        with Stores(self.settings) as stores:
            hidden = [Matcher(query) for query in stores.history.forgotten_queries()]
            return remove_entries(
                stores.history.log,
                self.settings,
                lambda event: any(matcher.wants(row_of(event.envelope)) for matcher in hidden),
            )


def _describe_erasure(name: str, there: EraseReport) -> InstanceErasure:
    if not there.given:
        return InstanceErasure(name, problem="it has no way to erase: do it in its backend")
    return InstanceErasure(name, there.erased, there.remains)


def _describe_unsealed(log: Removed, settings: Settings) -> Sequence[str]:
    text = (
        f"{log.unsealed} entries stay in the log in Redis, because the archive seals an entry "
        f"{settings.seal_after:g} s after it came, and only sealed ones are removed. Run this "
        "again then; otherwise they leave the log at the end of the hot window"
    )
    return (text,) if log.unsealed else ()
