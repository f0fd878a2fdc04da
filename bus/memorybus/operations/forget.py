"""``memorybus forget``: a person, or what an agent was told, erased wherever it can be reached.

1. A tombstone hides the events up to now from every reader: no replay and no rebuild brings them
   back, and the archive drops their bytes.
2. The lanes pass that place, so that nothing is on its way to a provider.
3. Each instance erases, where its state is; what it cannot reach it names.
4. What is warm, and dead letters, go; then what the log still has, as far as it is sealed.

Each step may be done again: whoever runs the command a second time ends what the first one left.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import Final

import msgspec

from memorybus.archive.tombstones import Tombstone
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.dead_letters.requests import LetterRequest
from memorybus.errors import ConfigError
from memorybus.events import Scope, SessionRef
from memorybus.ids import new_id
from memorybus.jobs.inspect import EraseReport, InspectionFailed, InstanceInspector
from memorybus.log.removal import Removed, remove_entries
from memorybus.operations.archive import archive as archiving
from memorybus.operations.dead_letters import selection, waiting
from memorybus.operations.dead_letters.selection import OperatorDecision
from memorybus.operations.stores import Stores
from memorybus.processes.child import running_child
from memorybus.processes.commands import archive_command
from memorybus.query.filter import Matcher
from memorybus.query.query import Query, row_of
from memorybus.recall.model import RecallRequest
from memorybus.recall.purge import purge_sessions
from memorybus.registry.instances import InstancesView

LOOK = 0.2
"""Seconds between two looks at the lanes, and before an instance is asked again."""

BEYOND: Final = (
    "spools of agents that are away: providers get what they send later; run this again then",
    "segments of the archive as they were, for an hour after they were written anew",
    "system prompts that agents' hosts have noted, for 30 days at most",
    "Redis's memory has a deleted entry until its last neighbour goes, within the hot window",
    "Redis's files hold what was written until they are rewritten: redis-cli bgrewriteaof",
    "the tombstone, which names who is forgotten: without it a replay would bring them back",
    "backups of Redis, of the archive and of providers, exports, and logs of other programs",
)
"""What no command of the bus can reach, in any installation."""


class Whose(msgspec.Struct, frozen=True):
    """Who is to be forgotten; a part that is None stands for everyone's."""

    user: str | None = None
    agent: str | None = None
    workspace: str | None = None

    def query(self, upto: int = 0) -> Query:
        """Return which events are theirs, up to a time (milliseconds; 0 for all).

        Raises:
            ConfigError: nobody is named.
        """
        users, agents, workspaces = map(_some, (self.user, self.agent, self.workspace))
        if not (users or agents or workspaces):
            raise ConfigError("say who is to be forgotten: --user, --agent or --workspace")
        return Query(users=users, agents=agents, workspaces=workspaces, upto=upto)

    def owns(self, scope: Scope) -> bool:
        """Say whether a scope is theirs."""
        asked = ((self.user, scope.user), (self.agent, scope.agent))
        here = self.workspace in (None, scope.workspace)
        return here and all(want is None or want == held for want, held in asked)


def _some(word: str | None) -> tuple[str, ...]:
    return () if word is None else (word,)


class Found(msgspec.Struct, frozen=True):
    """What the history has of somebody.

    Attributes:
        events: how many events.
        sessions: in which scopes and sessions, one for each epoch.
        newest: when the newest one happened, milliseconds; 0 for none.
    """

    events: int
    sessions: frozenset[tuple[Scope, SessionRef]]
    newest: int

    @property
    def session_count(self) -> int:
        """Return how many sessions there are."""
        return len({(scope, session.id) for scope, session in self.sessions})


class ErasurePlan(msgspec.Struct, frozen=True):
    """What an erasure would reach.

    Attributes:
        whose: who is to be forgotten.
        found: what the history has of them.
        instances: the instances that are asked, each with its provider.
        letters: their dead letters.
    """

    whose: Whose
    found: Found
    instances: dict[str, str]
    letters: list[LocatedLetter]


class InstanceErasure(msgspec.Struct, frozen=True):
    """What became of an erasure in one instance.

    Attributes:
        name: the instance.
        erased: how many memories went; None if it does not say.
        remains: what it could not reach.
        problem: why it was not erased there; "" if it was.
    """

    name: str
    erased: int | None = None
    remains: tuple[str, ...] = ()
    problem: str = ""


class Erasure(msgspec.Struct, frozen=True):
    """What an erasure did; its ``--json``.

    Attributes:
        tombstone: its id; "" if there was nothing to hide.
        events: events that are hidden from now on.
        sessions: sessions whose warm results went.
        letters: dead letters that were to go.
        log: entries of the log in Redis.
        instances: what became of it in each.
        remains: what is left elsewhere.
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

    @property
    def whole(self) -> bool:
        """Whether everything that can be reached was."""
        return not (self.problems or any(one.problem for one in self.instances))


def planned(settings: Settings, whose: Whose) -> ErasurePlan:
    """Return what an erasure would reach; change nothing.

    Raises:
        ConfigError: nobody is named.
        LogError, ArchiveError: the history cannot be read.
    """
    query = whose.query()
    with Stores(settings) as stores:
        stores.check()
        found = _found(stores, query)
        sight = stores.instances.look()
    with closing(DeadLetters(settings)) as desk:
        all_letters = desk.letters(desk.providers())
    letters = [dead for dead in all_letters if whose.owns(dead.stored.letter.scope)]
    return ErasurePlan(whose, found, _instances(settings, sight), letters)


def _found(stores: Stores, query: Query) -> Found:
    events, newest, sessions = 0, 0, set[tuple[Scope, SessionRef]]()
    for event in stores.history.scan(query):
        envelope = event.envelope
        events, newest = events + 1, max(newest, envelope.at)
        sessions.add((msgspec.structs.replace(envelope.scope, platform=""), envelope.session))
    return Found(events, frozenset(sessions), newest)


def _instances(settings: Settings, sight: InstancesView) -> dict[str, str]:
    """Return every instance that may keep anything, with its provider."""
    copies = {one.name: one.provider for one in sight.all.values() if not one.dropped}
    return {name: name for name in settings.providers} | copies


class Eraser:
    """Carries an erasure out.

    Args:
        settings: which log.
        wait: seconds for which lanes, each instance and dead letters are waited for.
        step: told what is done now.
        clock: time.
    """

    def __init__(
        self, settings: Settings, wait: float, step: Callable[[str], None], clock: Clock = SYSTEM
    ) -> None:
        """Do nothing yet."""
        self._settings = settings
        self._wait = wait
        self._step = step
        self._clock = clock
        self._problems: list[str] = []

    def erase(self, plan: ErasurePlan, reason: str, by: str) -> Erasure:
        """Erase; each part that fails is told, and the others are done.

        Raises:
            ArchiveError: the tombstone cannot be written; nothing was erased.
            LogError: Redis is away; run it again.
        """
        tombstone = self._hide(plan, reason, by)
        self._await_lanes(plan.instances)
        instances = [self._erase_in(plan.whose, *one) for one in plan.instances.items()]
        self._step("warm results")
        purge_sessions(self._settings, plan.found.sessions, plan.instances)
        self._discard(plan.letters, reason, by)
        self._compact()
        log = self._remove() if not self._problems else Removed()
        return Erasure(
            tombstone=tombstone,
            events=plan.found.events,
            sessions=plan.found.session_count,
            letters=len(plan.letters),
            log=log,
            instances=instances,
            remains=[*_unsealed(log, self._settings), *BEYOND],
            problems=self._problems,
        )

    def _hide(self, plan: ErasurePlan, reason: str, by: str) -> str:
        """Write the tombstone, if there is anything to hide; return its id."""
        self._step("tombstone")
        if not plan.found.events:
            return ""
        now = self._clock.now_ms()
        query = plan.whose.query(upto=max(now, plan.found.newest))
        tombstone = Tombstone(id=new_id(), query=query, reason=reason, at=now, by=by)
        with closing(archiving.opened(self._settings)) as archive:
            archive.forget(tombstone)
        return tombstone.id

    def _await_lanes(self, instances: Collection[str]) -> None:
        """Wait until every lane that does not stand still has passed what the log has now."""
        self._step("lanes")
        until = self._clock.monotonic() + self._wait
        with Stores(self._settings) as stores:
            heads = {head.partition: head.n for head in stores.history.log.heads()}
            moving = set(instances) - stores.instances.pauses().keys()
            while behind := stores.behind(moving, heads):
                if self._clock.monotonic() >= until:
                    break
                self._clock.sleep(LOOK)
        self._problems += [
            f"{name} has not applied {left} events that came before: what it makes of them later "
            "is not erased; run this again when it has caught up (memorybus status)"
            for name, left in behind.items()
        ]

    def _erase_in(self, whose: Whose, name: str, provider: str) -> InstanceErasure:
        """Let one instance erase; a long erasure goes on until the time is up."""
        self._step(name)
        want = RecallRequest(
            query="", agent=whose.agent, user=whose.user, workspace=whose.workspace
        )
        until = self._clock.monotonic() + self._wait
        while True:
            try:
                inspector = InstanceInspector(self._settings, self._clock)
                return _described(name, inspector.forget(provider, name, want))
            except InspectionFailed as error:
                if self._clock.monotonic() >= until:
                    return InstanceErasure(name, problem=str(error))
                self._clock.sleep(LOOK)

    def _discard(self, letters: Sequence[LocatedLetter], reason: str, by: str) -> None:
        """Have dead letters discarded by their lanes' owners."""
        self._step("dead letters")
        decision = OperatorDecision("discard", reason, by, self._clock.now_ms())
        asked: dict[str, list[LetterRequest]] = {}
        for provider, request in selection.requests(decision, letters, new_id):
            asked.setdefault(provider, []).append(request)
        with closing(DeadLetters(self._settings)) as desk:
            for provider, requests in asked.items():
                desk.send(provider, requests)
            waited = waiting.wait(
                *(desk, asked, self._clock),
                timeout=self._wait,
                ownerless=2 * self._settings.lease,
                progress=lambda _: None,
            )
        if waited.left:
            self._problems.append(
                f"{waited.left} requests for dead letters are not carried out yet; the owners of "
                "their lanes do so (memorybus dlq ls)"
            )

    def _compact(self) -> None:
        """Seal what may be sealed, and take the hidden bytes out of the segments."""
        self._step("archive")
        with running_child(archive_command(), self._settings) as child:
            done = child.report() or {}
            code = child.wait()
        errors = "; ".join(f"{name}: {why}" for name, why in done.get("errors", {}).items())
        if code or errors or done.get("elsewhere"):
            why = errors or "run `memorybus archive run` on its host"
            self._problems.append(f"the archive still has the bytes: {why}")

    def _remove(self) -> Removed:
        """Take what any tombstone hides out of the log, as far as it is sealed.

        Not while a lane is behind, or the archive in trouble: who needs it would look for it there.
        """
        self._step("log")
        with Stores(self._settings) as stores:
            hidden = [Matcher(query) for query in stores.history.forgotten_queries()]
            return remove_entries(
                stores.history.log,
                self._settings,
                lambda event: any(one.wants(row_of(event.envelope)) for one in hidden),
            )


def _described(name: str, there: EraseReport) -> InstanceErasure:
    if not there.given:
        return InstanceErasure(name, problem="it has no way to erase: do it in its backend")
    return InstanceErasure(name, there.erased, there.remains)


def _unsealed(log: Removed, settings: Settings) -> Sequence[str]:
    said = (
        f"{log.unsealed} entries of the log in Redis are not sealed yet, which they are "
        f"{settings.seal_after:g} s after they came: run this again, or wait for the hot window"
    )
    return (said,) if log.unsealed else ()
