"""What the curator did and would do, with the texts of the memories, and its reversal.

What changed is read from the history, where the events of a run carry its id.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Annotated, Final

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.events import Derived, MemoryCurated, MemoryState, Scope
from memorybus.log.entry import parse_entry_id
from memorybus.query.query import Query
from memorybus.registry.curation import CuratorRun, Repetition
from memorybus.registry.instances import live_name
from memorybus.testing import crash_points
from memorybus_workers.curating.curator import CurationPlan, Curator
from memorybus_workers.curating.proposing import fact_name
from memorybus_workers.curating.repetitions import MemoryId
from memorybus_workers.curating.transitions import Change, CuratedMemory

from memorybus_console.operations import journal
from memorybus_console.operations.moments import await_lanes
from memorybus_console.operations.stores import Stores
from memorybus_console.result import HIDDEN, TEXT, TIME, Column, Remark, Result

_EVENTS: Final = Query(types=(MemoryCurated.__name__, Derived.__name__))

_SLACK_MS: Final = 3_600_000
"""How far the clock of Redis may have been set back since a run, milliseconds."""


class CuratedLine(msgspec.Struct, frozen=True):
    """One memory and what becomes of it.

    Attributes:
        memory: its id.
        user, agent, workspace: its owner.
        change: its states before and after.
        reason: why.
        text: what it says; "" if no provider keeps it any more.
    """

    memory: str
    user: str
    change: str
    reason: Annotated[str, TEXT]
    text: Annotated[str, TEXT]
    agent: Annotated[str, HIDDEN] = ""
    workspace: Annotated[str, HIDDEN] = ""


class PlannedCuration(Result, frozen=True):
    """What would be changed.

    Attributes:
        memories: how many memories were looked at.
        changes: what would change.
        waiting: repetitions that would wait for a person.
        unable: providers whose memories cannot be seen, with the reason.
        questions: how many questions a model would be asked; what it proposes is not known before.
        executed: never.
    """

    memories: int
    changes: tuple[CuratedLine, ...] = ()
    waiting: Annotated[tuple[CuratedLine, ...], Column(title="waiting for a person")] = ()
    unable: Annotated[dict[str, str], HIDDEN] = msgspec.field(default_factory=dict)
    questions: int = 0
    executed: Annotated[bool, HIDDEN] = False

    def headline(self) -> str:
        """Return that nothing would change, if so."""
        return "" if self.changes or self.waiting or self.questions else "nothing would change"

    def notes(self) -> Iterator[Remark]:
        """Yield what could not be seen."""
        for name, why in self.unable.items():
            yield Remark(f"{name}: {why}")
        yield Remark("nothing was done")


class CurationReport(Result, frozen=True):
    """A run.

    Attributes:
        run: its id; "" if there was nothing to change.
        by: who began it.
        began, ended: when; 0 if it has not.
        phase: what it does, or did when it was killed: ageing, repetitions,
            asking (a model), done.
        memories: how many memories it looked at.
        changes: what it changed.
        waiting: what waits for a person.
        asked: how many questions a model was asked.
        tokens: how many tokens that took.
        refused: why proposals of the model were refused.
        unable: providers whose memories it could not see, and ``model`` if it did not answer, with
            the reason.
        behind: instances that have not applied the changes yet, with how many events they lack.
        problem: why it failed; "" if it did not.
        executed: always.
    """

    run: str
    by: str = ""
    began: Annotated[int, TIME] = 0
    ended: Annotated[int, TIME] = 0
    phase: str = ""
    memories: int = 0
    changes: tuple[CuratedLine, ...] = ()
    waiting: Annotated[tuple[CuratedLine, ...], Column(title="waiting for a person")] = ()
    unable: Annotated[dict[str, str], HIDDEN] = msgspec.field(default_factory=dict)
    behind: Annotated[dict[str, int], HIDDEN] = msgspec.field(default_factory=dict)
    problem: str = ""
    asked: int = 0
    tokens: int = 0
    refused: Annotated[tuple[str, ...], HIDDEN] = ()
    executed: Annotated[bool, HIDDEN] = True

    def headline(self) -> str:
        """Return that nothing changed, if so."""
        return "" if self.changes or self.waiting or self.problem else "nothing changed"

    def notes(self) -> Iterator[Remark]:
        """Yield what could not be seen, who is behind, and the next command."""
        for name, why in self.unable.items():
            yield Remark(f"{name}: {why}")
        for why in self.refused:
            yield Remark(f"a proposal was refused: {why}")
        for name, missing in self.behind.items():
            yield Remark(f"{name} has not applied it yet: it lacks {missing} events", "yellow")
        if self.run and self.waiting:
            yield Remark(f"do what waits: memorybus curator accept {self.run} (or reject)")
        if self.run and self.changes:
            yield Remark(f"take it back: memorybus curator undo {self.run}")

    def failed(self) -> bool:
        """Return whether the run failed, or an instance has not applied its changes yet."""
        return bool(self.behind or self.problem)


class RunLine(msgspec.Struct, frozen=True):
    """One run in a list.

    Attributes:
        run: its id.
        by: who began it.
        began: when.
        phase: what it does, or did when it was killed.
        memories: how many memories it looked at.
        changed: how many it gave each state.
        waiting: how many repetitions wait for a person.
        problem: why it failed; "" if it did not.
    """

    run: str
    by: str
    began: Annotated[int, TIME]
    phase: str
    memories: int
    changed: Annotated[dict[str, int], TEXT]
    waiting: int
    problem: Annotated[str, TEXT] = ""


class SkillLine(msgspec.Struct, frozen=True):
    """A skill that an agent wrote.

    Attributes:
        skill: its id, as `curator pin` takes it.
        agent: whose it is.
        state: active, stale, archived or pinned.
        used: its last use; 0 if none is known.
        aged_by: who decides how it ages.
        text: what it is for.
    """

    skill: str
    agent: str
    state: str
    used: Annotated[int, TIME]
    aged_by: str
    text: Annotated[str, TEXT]


class CuratorStatus(Result, frozen=True):
    """The curator's last runs.

    Attributes:
        running: the run that works now; "" if none does.
        every: seconds between two runs; 0 if workers begin none.
        runs: the newest first.
        skills: the skills that agents wrote.
        unable: providers whose skills cannot be seen, with the reason.
    """

    running: str
    every: Annotated[float, Column(unit="seconds")]
    runs: tuple[RunLine, ...]
    skills: tuple[SkillLine, ...] = ()
    unable: Annotated[dict[str, str], HIDDEN] = msgspec.field(default_factory=dict)

    def notes(self) -> Iterator[Remark]:
        """Yield what could not be seen, and that there was no run yet."""
        for name, why in self.unable.items():
            yield Remark(f"{name}: {why}")
        if not self.runs:
            yield Remark(
                "the curator has not run yet; see what it would do: memorybus curator run --dry-run"
            )


def opened(settings: Settings, clock: Clock = SYSTEM) -> closing[Curator]:
    """Open the curator."""
    return closing(Curator(settings, clock, crash=crash_points(settings.crash_at)))


def read_status(settings: Settings) -> CuratorStatus:
    """Return the last runs, and the skills that agents wrote.

    Raises:
        LogError: Redis is away.
    """
    with opened(settings) as curator:
        runs, running = curator.runs.newest(), curator.runs.leased()
        skills, unable = curator.skills()
    lines = tuple(
        RunLine(
            run.id, run.by, run.began, _phase(run, running), run.memories, run.counts,
            len(run.waiting), run.failed,
        )
        for run in runs
    )  # fmt: skip
    shown = tuple(
        SkillLine(
            skill.name, skill.scope.agent, skill.state, skill.used,
            "memorybus" if skill.ages else "Hermes", skill.text,
        )
        for skill in skills
    )  # fmt: skip
    return CuratorStatus(running, settings.curator_every, lines, shown, unable)


def read_report(settings: Settings, number: int = 1) -> CurationReport:
    """Return a run with its changes; 1 is the last run.

    Raises:
        ConfigError: there were fewer runs.
        LogError: Redis is away.
    """
    with opened(settings) as curator:
        runs = curator.runs.newest()
        if not 1 <= number <= len(runs):
            raise ConfigError(
                f"there is no run {number}: {len(runs)} are known; see: memorybus curator status"
            )
        return _report_of(settings, curator, runs[number - 1], curator.read()[0])


def find_run(curator: Curator, name: str) -> CuratorRun:
    """Return the run whose id begins with a text.

    Raises:
        ConfigError: there is none, or several.
    """
    runs = [run for run in curator.runs.newest() if name and run.id.startswith(name)]
    if len(runs) != 1:
        raise ConfigError(
            f"{'several runs begin' if runs else 'no run begins'} with {name!r}; see: "
            "memorybus curator status"
        )
    return runs[0]


def find_memory(
    known: Mapping[MemoryId, CuratedMemory], name: str, user: str | None
) -> CuratedMemory:
    """Return a memory by its id.

    Args:
        user: whose it is; None if there is only one of this id.

    Raises:
        ConfigError: there is none, or several people have one.
    """
    owned = [m for m in known.values() if m.name == name and user in {None, m.scope.user}]
    if len(owned) != 1:
        what = "several people have a" if owned else "there is no"
        raise ConfigError(
            f"{what} memory {name!r} that ages"
            f"{'; add --user' if owned else '; see: memorybus memories list --json'}"
        )
    return owned[0]


def plan_report(plan: CurationPlan, questions: int) -> PlannedCuration:
    """Return a plan with the texts of its memories."""
    return PlannedCuration(
        len(plan.known),
        _lines_of((*plan.aged, *plan.repeated)),
        tuple(_waiting_line(repetition, plan.known) for repetition in plan.waiting),
        plan.unable,
        questions,
    )


def changes_report(changes: Sequence[Change]) -> PlannedCuration:
    """Return changes that a person decided about, as a plan."""
    return PlannedCuration(len(changes), _lines_of(changes))


def undoing(
    settings: Settings, known: Mapping[MemoryId, CuratedMemory], run: CuratorRun
) -> list[Change]:
    """Return the changes that take a run back, of the memories that are still as it left them.

    A repetition that comes back is pinned with the memory that stood for it: else the next run
    would archive it again. A memory that the run made is archived for good instead.
    """
    changes: dict[MemoryId, Change] = {}
    made: set[MemoryId] = set()
    for scope, event in events_of(settings, run):
        if isinstance(event, Derived):
            made.add((scope, fact_name(scope, event.text)))
            continue
        memory = known.get((scope, event.memory))
        if memory is None or (memory.state, memory.successor) != (event.after, event.successor):
            continue
        reason = f"run {run.id} was taken back"
        kept: MemoryState = "pinned" if event.successor else event.before
        changes[scope, event.memory] = Change(memory, kept, reason)
        successor = known.get((scope, event.successor))
        if successor is not None and successor.state not in {"pinned", "archived"}:
            is_made = (scope, successor.name) in made
            after = ("archived", reason, event.memory) if is_made else ("pinned", reason)
            changes[scope, successor.name] = Change(successor, *after)
    return list(changes.values())


def waiting_report(run: CuratorRun, known: Mapping[MemoryId, CuratedMemory]) -> PlannedCuration:
    """Return what waits in a run."""
    lines = tuple(_waiting_line(proposal, known) for proposal in run.waiting)
    return PlannedCuration(len(lines), waiting=lines)


def reject_waiting(settings: Settings, name: str, clock: Clock) -> CurationReport:
    """Drop what waits in a run, and return the run.

    Raises:
        ConfigError: no run, or several, have such an id.
    """
    with opened(settings, clock) as curator:
        run = curator.reject(find_run(curator, name))
        return _report_of(settings, curator, run, curator.read()[0])


def apply_changes(
    settings: Settings, by: str, changes: Sequence[Change], wait: float, clock: Clock
) -> CurationReport:
    """Publish changes as a run, and wait until providers have applied them.

    Raises:
        CuratorBusy: a run works now.
        MemoryBusError: Redis is away, or an event cannot be spooled.
    """
    with opened(settings, clock) as curator:
        run = curator.apply(by, changes)
    behind = await_applied(settings, wait, clock)
    return _report(run, _lines_of(changes), (), behind)


def run_now(
    settings: Settings, by: str, *, review: bool, wait: float, clock: Clock
) -> CurationReport:
    """Run the curator, and wait until providers have applied what it changed.

    Raises:
        CuratorBusy: a run works now.
        MemoryBusError: Redis is away, or an event cannot be spooled.
    """
    with opened(settings, clock) as curator:
        run = curator.run(by, review=review)
        behind = await_applied(settings, wait, clock)
        report = _report_of(settings, curator, run, curator.read()[0])
    return msgspec.structs.replace(report, behind=behind)


def await_applied(settings: Settings, wait: float, clock: Clock) -> dict[str, int]:
    """Wait until the instances that keep states have applied the log; return which have not."""
    with Stores(settings) as stores:
        live = stores.instances.live()
        curating = [
            live_name(name, live)
            for name, info in stores.roster.providers().items()
            if info.curates
        ]
        return await_lanes(stores, curating, wait, clock)


def events_of(settings: Settings, run: CuratorRun) -> list[tuple[Scope, MemoryCurated | Derived]]:
    """Return the events of a run with the owners of the memories, what it made first."""
    events: list[tuple[Scope, MemoryCurated | Derived]] = []
    with closing(journal.open_history(settings)) as history:
        for logged in history.scan_backward(_EVENTS):
            if parse_entry_id(logged.position.entry)[0] < run.began - _SLACK_MS:
                break
            event = logged.envelope.event
            match event:
                case MemoryCurated(run=run.id) | Derived(cause=run.id):
                    events.append((_owner_of(logged.envelope.scope), event))
    events.reverse()
    return sorted(events, key=lambda pair: isinstance(pair[1], MemoryCurated))


def _report_of(
    settings: Settings,
    curator: Curator,
    run: CuratorRun,
    known: Mapping[MemoryId, CuratedMemory],
) -> CurationReport:
    lines = tuple(_event_line(*changed, known) for changed in events_of(settings, run))
    shown = msgspec.structs.replace(run, phase=_phase(run, curator.runs.leased()))
    return _report(
        shown, lines, tuple(_waiting_line(repetition, known) for repetition in run.waiting), {}
    )


def _report(
    run: CuratorRun,
    changes: tuple[CuratedLine, ...],
    waiting: tuple[CuratedLine, ...],
    behind: dict[str, int],
) -> CurationReport:
    return CurationReport(
        run.id, run.by, run.began, run.ended, run.phase, run.memories, changes, waiting,
        run.unable, behind, run.failed, len(run.judged), run.tokens, run.refused,
    )  # fmt: skip


def _phase(run: CuratorRun, running: str) -> str:
    """Return a run's phase, and whether it was killed in it."""
    return run.phase if run.ended or run.id == running else f"ended while {run.phase}"


def _lines_of(changes: Sequence[Change]) -> tuple[CuratedLine, ...]:
    return tuple(
        _line(
            change.memory.scope,
            change.memory.name,
            f"{change.memory.state} → {change.after}",
            change.reason,
            change.memory.text,
        )
        for change in changes
    )


def _event_line(
    scope: Scope, event: MemoryCurated | Derived, known: Mapping[MemoryId, CuratedMemory]
) -> CuratedLine:
    if isinstance(event, Derived):
        name = fact_name(scope, event.text)
        reason = f"made of {len(event.sources)} by {event.model}"
        return _line(scope, name, "new", reason, event.text)
    memory = known.get((scope, event.memory))
    change = f"{event.before} → {event.after}"
    return _line(scope, event.memory, change, event.reason, memory.text if memory else "")


def _waiting_line(proposal: Repetition, known: Mapping[MemoryId, CuratedMemory]) -> CuratedLine:
    scope = Scope(agent=proposal.agent, user=proposal.user, workspace=proposal.workspace)
    memory = known.get((scope, proposal.memory))
    text = memory.text if memory else ""
    shown = f"{text} → {proposal.text}" if proposal.text else text
    return _line(scope, proposal.memory, "→ archived", proposal.reason, shown)


def _line(scope: Scope, memory: str, change: str, reason: str, text: str) -> CuratedLine:
    return CuratedLine(memory, scope.user, change, reason, text, scope.agent, scope.workspace)


def _owner_of(scope: Scope) -> Scope:
    return Scope(agent=scope.agent, user=scope.user, workspace=scope.workspace)
