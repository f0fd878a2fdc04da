"""One run of the curator: it reads memories, decides, and publishes what changes.

Only one run works at a time. What it did is in the history and its state in Redis before it goes
on, so that a run that was killed is neither repeated nor waited for: the next one decides anew from
the memories as they are then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

import msgspec
from memorybus.agent.client import MemoryBus
from memorybus.clock import Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError, MissingProvider, Permanent, ProviderError
from memorybus.events import Derived, MemoryCurated, Scope, SessionRef
from memorybus.ids import NewId, derived_id, new_id, new_rng
from memorybus.jobs.inspect import InspectionFailed, InstanceInspector, ReadKept
from memorybus.log.stream import EventLog
from memorybus.msgspec_types import prepared
from memorybus.recall.model import RecallRequest
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys, store_key
from memorybus.registry.curation import CuratorRun, CuratorRuns, Repetition
from memorybus.registry.instances import Instances, live_name
from memorybus.registry.lanes import LaneKeys
from memorybus.registry.roster import Roster
from memorybus.testing import CrashPoint, no_crash
from memorybus_providers.base import StoredMemory
from memorybus_providers.deriving.model import ChatModel

from memorybus_workers.calls.model_gate import open_model
from memorybus_workers.curating.proposing import TASK, AlikeMemories, Proposals, find_groups, judge
from memorybus_workers.curating.repetitions import (
    MemoryId,
    accepted,
    apply_changes,
    find_contained,
    find_repetitions,
)
from memorybus_workers.curating.transitions import Change, CuratedMemory, transitions

CURATOR = SessionRef(id="curator", root="curator")
"""The session of the events that change states."""

SKILLS = "hermes-skills"
"""The kind of provider that keeps the skills of an agent."""

EVERYBODY = RecallRequest(query="", agent=None, user=None, workspace=None)

_MOST_WAITING = 200
"""The most repetitions that wait for a person (G10); the next run proposes others."""

_BATCH = 200
"""How many events are published before the lease is prolonged."""

_LOG_SECONDS = 10.0
"""Seconds to wait until Redis has taken a batch; what it has not taken stays spooled."""

MAX_QUESTIONS = 10
"""The most questions of a run to a model; the next run asks others (G10)."""

_ASK_SECONDS = 240.0
"""Seconds after which a run asks nothing more."""

_TRIES = 4
"""How often the model may be asked about one group: an answer and its repair, each twice."""

REVISION = "1"
"""The version of what the model is asked; facts that come from it carry this."""

_CATCH_UP_SECONDS = 10.0
_POLL_SECONDS = 0.1


def _nothing() -> None:
    """Keep no lease: what only reads needs none."""


class CurationPlan(msgspec.Struct, frozen=True):
    """What a run would do.

    Attributes:
        known: the memories that it looked at.
        aged: memories that change by age or use.
        repeated: memories that another one stands for from now on.
        waiting: repetitions that wait for a person.
        unable: providers whose memories it could not see, with the reason.
    """

    known: dict[MemoryId, CuratedMemory]
    aged: tuple[Change, ...]
    repeated: tuple[Change, ...]
    waiting: tuple[Repetition, ...]
    unable: dict[str, str]


class Curator:
    """Runs the curator. Belongs to one thread; `close` it.

    Args:
        crash: crash points of fault tests: ``curator.published``, ``curator.aged``,
            ``curator.asking``, ``curator.asked``, ``curator.stated``.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        make_id: NewId = new_id,
        crash: CrashPoint = no_crash,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._make_id = make_id
        self._crash = crash
        self._redis = connect_redis(settings)
        keys = Keys(settings.namespace)
        self.runs = CuratorRuns(self._redis, keys)
        self._roster = Roster(self._redis, keys)
        self._instances = Instances(self._redis, keys)
        self._lanes = LaneKeys(self._redis, settings)
        self._log = EventLog(self._redis, settings)
        self._inspector = InstanceInspector(settings, clock, make_id)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def plan(self, *, review: bool = False, keep: Callable[[], None] = _nothing) -> CurationPlan:
        """Return what a run would do; change nothing.

        Args:
            review: whether every repetition waits for a person.
            keep: called after each page of memories.
        """
        known, unable = self.read(keep)
        now = self._clock.now_ms()
        rejected = {_pair(each) for run in self.runs.newest() for each in run.rejected}
        aged = transitions(known.values(), now, self._settings)
        after = apply_changes(known, aged, now)
        same, contained = find_repetitions(after.values()), find_contained(after.values())
        repeated = [] if review else accepted(same, after)
        settled = {change.memory.name for change in repeated}
        open_questions = [
            each
            for each in (*same, *contained)
            if each.memory not in settled and _pair(each) not in rejected
        ]
        waiting = tuple(open_questions[:_MOST_WAITING])
        return CurationPlan(known, tuple(aged), tuple(repeated), waiting, unable)

    def groups(self, plan: CurationPlan) -> list[AlikeMemories]:
        """Return what the model of the settings would be asked about; none without a model."""
        if not self._settings.model.base_url:
            return []
        now = self._clock.now_ms()
        after = apply_changes(plan.known, (*plan.aged, *plan.repeated), now)
        judged = {digest for run in self.runs.newest() for digest in run.judged}
        return list(islice(find_groups(after.values(), judged), MAX_QUESTIONS))

    def run(self, by: str, *, review: bool = False) -> CuratorRun:
        """Do what `plan` returns; what it publishes is applied by every provider that can.

        Raises:
            CuratorBusy: another run works now, or this one was suspended for too long.
            MemoryBusError: Redis is away, or an event cannot be spooled.
        """
        with self._leased(by) as begun:
            plan = self.plan(review=review, keep=lambda: self.runs.keep_lease(begun.id))
            seen = msgspec.structs.replace(begun, memories=len(plan.known), unable=plan.unable)
            aged = self._publish(seen, plan.aged)
            compared = msgspec.structs.replace(aged, phase="repetitions", waiting=plan.waiting)
            self.runs.put(compared)
            self._crash("curator.aged")
            repeated = self._publish(compared, plan.repeated)
            return self._finish(self._ask(repeated, self.groups(plan), review=review))

    def apply(self, by: str, changes: Sequence[Change]) -> CuratorRun:
        """Publish changes that a person decided about, as a run of their own.

        Raises:
            CuratorBusy, MemoryBusError: see `run`.
        """
        with self._leased(by) as begun:
            return self._finish(self._publish(begun, changes))

    def reject(self, run: CuratorRun) -> CuratorRun:
        """Drop what waits in a run; it is not proposed again."""
        rejected = msgspec.structs.replace(run, waiting=(), rejected=(*run.rejected, *run.waiting))
        self.runs.put(rejected)
        return rejected

    # -- asking a model -----------------------------------------------------------------------

    def _ask(self, run: CuratorRun, groups: Sequence[AlikeMemories], *, review: bool) -> CuratorRun:
        """Ask the model about groups, and publish what holds.

        What is asked is in the run's record before: a pass that is killed or hangs is not repeated.
        A model that does not answer ends the pass, and the next run asks again.
        """
        if not groups:
            return run
        run = msgspec.structs.replace(run, phase="asking")
        until = self._clock.monotonic() + _ASK_SECONDS
        try:
            model = open_model(self._settings, self._redis, self._clock, new_rng())
            if model is None:
                return run
            with closing(model):
                for group in groups:
                    if self._clock.monotonic() < until:
                        run = self._ask_about(run, group, model, review=review)
        except (ProviderError, MissingProvider, ConfigError) as error:
            run = msgspec.structs.replace(run, unable={**run.unable, "model": str(error)[:500]})
        return run

    def _ask_about(
        self, run: CuratorRun, group: AlikeMemories, model: ChatModel[Any], *, review: bool
    ) -> CuratorRun:
        self.runs.keep_lease(run.id, round(_TRIES * 1000 * self._settings.model.timeout))
        asked = msgspec.structs.replace(run, judged=(*run.judged, group.digest))
        self.runs.put(asked)
        self._crash("curator.asking")
        try:
            answer = model.ask(Proposals, TASK, group.data(), group.scope.user)
        except Permanent as error:  # no answer that fits, or the service refuses this question
            return msgspec.structs.replace(asked, refused=(*asked.refused, str(error)[:500]))
        except ProviderError:
            self.runs.put(run)
            raise
        self._crash("curator.asked")
        found = judge(group, answer.value.proposals, answer.model)
        recorded = msgspec.structs.replace(
            asked,
            waiting=(*asked.waiting, *found.sure, *found.waiting)[:_MOST_WAITING],
            refused=(*asked.refused, *found.refused)[:_MOST_WAITING],
            tokens=asked.tokens + answer.tokens_in + answer.tokens_out,
        )
        self.runs.put(recorded)
        if review or not found.sure:
            return recorded
        # Whoever pinned or forgot something meanwhile is right.
        known = self.read(lambda: self.runs.keep_lease(run.id))[0]
        changes = accepted(found.sure, known)
        gone = {(*_owner(change.memory.scope), change.memory.name) for change in changes}
        left = [each for each in recorded.waiting if _pair(each)[:4] not in gone]
        published = self._publish(recorded, changes)
        return msgspec.structs.replace(published, waiting=tuple(left))

    def _finish(self, run: CuratorRun) -> CuratorRun:
        done = msgspec.structs.replace(run, phase="done", ended=self.runs.now_ms())
        self.runs.put(done)
        return done

    @contextmanager
    def _leased(self, by: str) -> Iterator[CuratorRun]:
        run = CuratorRun(id=self._make_id(), by=by, began=self.runs.now_ms())
        self.runs.take_lease(run.id)
        try:
            self.runs.put(run)
            yield run
        except MemoryBusError as error:
            current = next((each for each in self.runs.newest() if each.id == run.id), run)
            self.runs.put(msgspec.structs.replace(current, failed=str(error)[:500]))
            raise
        finally:
            self.runs.release(run.id)

    # -- reading ------------------------------------------------------------------------------

    def read(
        self, keep: Callable[[], None] = _nothing
    ) -> tuple[dict[MemoryId, CuratedMemory], dict[str, str]]:
        """Return all memories that are curated, and the providers that cannot show theirs."""
        known: dict[MemoryId, CuratedMemory] = {}
        unable: dict[str, str] = {}
        live = self._instances.live()
        for name, info in self._roster.providers().items():
            if not info.curates:
                unable[name] = "it keeps no states of memories"
                continue
            try:
                for memory in self._memories_of(name, live_name(name, live), keep):
                    seen = known.get((memory.scope, memory.name), memory)
                    known[memory.scope, memory.name] = _joined(seen, memory)
            except InspectionFailed as error:
                unable[name] = str(error)
        return known, unable

    def skills(self) -> tuple[list[CuratedMemory], dict[str, str]]:
        """Return the skills of agents as they are, and the providers that cannot show theirs."""
        known: list[CuratedMemory] = []
        unable: dict[str, str] = {}
        live = self._instances.live()
        for name, info in self._roster.providers().items():
            if info.kind != SKILLS:
                continue
            try:
                known += self._pages_of(name, live_name(name, live), _nothing)
            except InspectionFailed as error:
                unable[name] = str(error)
        return known, unable

    def _memories_of(
        self, provider: str, instance: str, keep: Callable[[], None]
    ) -> Iterator[CuratedMemory]:
        if not self._has_caught_up(instance):
            raise InspectionFailed(f"{instance} has not applied all events yet")
        yield from self._pages_of(provider, instance, keep)

    def _pages_of(
        self, provider: str, instance: str, keep: Callable[[], None]
    ) -> Iterator[CuratedMemory]:
        skip, more = 0, True
        while more:
            page = self._inspector.ask(provider, instance, ReadKept(EVERYBODY, skip, curated=True))
            keep()
            yield from map(_curated_memory, page.memories)
            skip, more = skip + len(page.memories), page.more

    def _has_caught_up(self, instance: str) -> bool:
        """Wait for a moment until an instance has applied what the log holds now."""
        heads = {head.partition: head.n for head in self._log.heads()}
        until = self._clock.monotonic() + _CATCH_UP_SECONDS
        while True:
            lanes = enumerate(self._lanes.states(instance))
            if all(lane.n >= heads.get(partition, 0) for partition, lane in lanes):
                return True
            if self._clock.monotonic() >= until:
                return False
            self._clock.sleep(_POLL_SECONDS)

    # -- publishing ---------------------------------------------------------------------------

    def _publish(self, run: CuratorRun, changes: Sequence[Change]) -> CuratorRun:
        """Publish changes, and count them in the run's record."""
        counts, stated = dict(run.counts), set[str]()
        with MemoryBus.connect(self._settings) as bus:
            for first in range(0, len(changes), _BATCH):
                self.runs.keep_lease(run.id)
                for change in changes[first : first + _BATCH]:
                    if change.fact and change.successor not in stated:
                        stated.add(change.successor)
                        self._state(bus, run.id, change)
                    self._publish_one(bus, run.id, change)
                    counts[change.after] = counts.get(change.after, 0) + 1
                    self._crash("curator.published")
                bus.flush("logged", timeout=_LOG_SECONDS)
        return msgspec.structs.replace(run, counts=counts)

    def _state(self, bus: MemoryBus, run: str, change: Change) -> None:
        """Publish the memory that stands for others from now on."""
        scope = change.memory.scope
        fact = Derived(
            kind="fact",
            text=change.fact,
            sources=change.sources,
            cause=run,
            deriver=CURATOR.id,
            revision=REVISION,
            model=self._settings.model.name,
        )
        bus.publish(
            fact,
            key=store_key("user", scope),
            scope=scope,
            session=CURATOR,
            event_id=derived_id("stated", run, *_owner(scope), change.successor),
            at=self._clock.now_ms(),
        )
        self._crash("curator.stated")

    def _publish_one(self, bus: MemoryBus, run: str, change: Change) -> None:
        memory, scope = change.memory, change.memory.scope
        bus.publish(
            MemoryCurated(
                memory=memory.name,
                before=memory.state,
                after=change.after,
                reason=change.reason,
                run=run,
                successor=change.successor,
            ),
            key=store_key("user" if scope.user else "memory", scope),
            scope=scope,
            session=CURATOR,
            event_id=derived_id("curated", run, *_owner(scope), memory.name, change.after),
            at=change.at(self._clock.now_ms()),
        )


def _pair(proposal: Repetition) -> tuple[str, ...]:
    owner = (proposal.agent, proposal.user, proposal.workspace)
    return (*owner, proposal.memory, proposal.successor)


def _owner(scope: Scope) -> tuple[str, str, str]:
    return scope.agent, scope.user, scope.workspace


def _curated_memory(fields: Mapping[str, Any]) -> CuratedMemory:
    kept = msgspec.convert(fields, prepared(StoredMemory))
    scope = Scope(agent=kept.agent, user=kept.user, workspace=kept.workspace)
    return CuratedMemory(
        *(kept.name, scope, kept.text, kept.at, kept.state, kept.since, kept.used, kept.successor),
        *(kept.ages, kept.event),
    )


def _joined(one: CuratedMemory, other: CuratedMemory) -> CuratedMemory:
    """Return a memory that two providers keep: its latest state, and its last use anywhere."""
    latest = max(one, other, key=lambda memory: memory.since)
    return msgspec.structs.replace(latest, used=max(one.used, other.used))
