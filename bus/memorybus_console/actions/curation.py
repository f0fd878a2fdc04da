"""Acts of the curator: run, pin, unpin, accept or reject what waits, take a run back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from memorybus.events import MemoryState
from memorybus_workers.curating.curator import Curator
from memorybus_workers.curating.repetitions import accepted
from memorybus_workers.curating.transitions import Change

from memorybus_console.actions.action import Action, Ground
from memorybus_console.operations import curation
from memorybus_console.operations.curation import CurationReport, PlannedCuration


@dataclass(frozen=True, kw_only=True)
class RunCurator(Action[PlannedCuration, CurationReport]):
    """Let memories age, and archive those that repeat others.

    Attributes:
        repetitions: whether they are archived, or every one waits for a person.
    """

    title = "run curator"
    recorded = ("repetitions",)
    is_harmless = True

    repetitions: Literal["archive", "review"] = "archive"

    def plan(self, ground: Ground) -> PlannedCuration:
        """Return what would be done; change nothing."""
        with curation.opened(ground.settings, ground.clock) as curator:
            plan = curator.plan(review=self.repetitions == "review")
            return curation.plan_report(plan, len(curator.groups(plan)))

    def carry_out(self, ground: Ground) -> CurationReport:
        """Run it, and wait until providers have applied what it changed."""
        return curation.run_now(
            ground.settings,
            ground.operator,
            review=self.repetitions == "review",
            wait=ground.wait,
            clock=ground.clock,
        )


@dataclass(frozen=True, kw_only=True)
class Curation(Action[PlannedCuration, CurationReport]):
    """Changes of memories that a person decides about; they are a run of their own."""

    is_harmless = True

    def changes(self, ground: Ground, curator: Curator) -> Sequence[Change]:
        """Return the changes."""
        raise NotImplementedError

    def plan(self, ground: Ground) -> PlannedCuration:
        """Return what would be done; change nothing."""
        return curation.changes_report(self._changes(ground))

    def carry_out(self, ground: Ground) -> CurationReport:
        """Publish the changes, if there are any, and wait until providers have applied them."""
        changes = self._changes(ground)
        if not changes:
            return CurationReport("")
        return curation.apply_changes(
            ground.settings, ground.operator, changes, ground.wait, ground.clock
        )

    def _changes(self, ground: Ground) -> Sequence[Change]:
        with curation.opened(ground.settings, ground.clock) as curator:
            return self.changes(ground, curator)


@dataclass(frozen=True, kw_only=True)
class PinMemory(Curation):
    """Keep a memory in prompts, however old it is.

    Attributes:
        memory: its id.
        user: whose it is, if several people have one of this id.
    """

    title = "pin memory"
    recorded = ("memory", "user")
    state: ClassVar[MemoryState] = "pinned"

    memory: str
    user: str | None = None

    def changes(self, ground: Ground, curator: Curator) -> Sequence[Change]:
        """Return the change; none if it is so already."""
        memory = curation.find_memory(curator.read()[0], self.memory, self.user)
        reason = self.reason or f"{self.title}, by {ground.operator}"
        is_pinned = memory.state == "pinned"
        return [] if is_pinned is (self.state == "pinned") else [Change(memory, self.state, reason)]


class UnpinMemory(PinMemory):
    """Let a pinned memory age again, from now on."""

    title = "unpin memory"
    state = "active"


@dataclass(frozen=True, kw_only=True)
class AcceptRepetitions(Curation):
    """Do what waits in a run, as far as it still holds.

    Attributes:
        run: the beginning of the run's id.
    """

    title = "accept repetitions"
    recorded = ("run",)

    run: str = ""

    def changes(self, ground: Ground, curator: Curator) -> Sequence[Change]:
        """Return the changes."""
        return accepted(curation.find_run(curator, self.run).waiting, curator.read()[0])


@dataclass(frozen=True, kw_only=True)
class RejectProposals(Action[PlannedCuration, CurationReport]):
    """Drop what waits in a run; it is not proposed again.

    Attributes:
        run: the beginning of the run's id.
    """

    title = "reject proposals"
    recorded = ("run",)
    is_harmless = True

    run: str = ""

    def plan(self, ground: Ground) -> PlannedCuration:
        """Return what would be dropped."""
        with curation.opened(ground.settings, ground.clock) as curator:
            run = curation.find_run(curator, self.run)
            return curation.waiting_report(run, curator.read()[0])

    def carry_out(self, ground: Ground) -> CurationReport:
        """Drop it."""
        return curation.reject_waiting(ground.settings, self.run, ground.clock)


@dataclass(frozen=True, kw_only=True)
class UndoCuration(Curation):
    """Give the memories of a run the states that they had before it.

    Attributes:
        run: the beginning of the run's id.
    """

    title = "undo curator run"
    recorded = ("run",)

    run: str = ""

    def changes(self, ground: Ground, curator: Curator) -> Sequence[Change]:
        """Return the changes, of the memories that are still as the run left them."""
        run = curation.find_run(curator, self.run)
        return curation.undoing(ground.settings, curator.read()[0], run)
