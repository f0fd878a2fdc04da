"""Acts on what is remembered: correct, delete, forget an owner, import an archive."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from memorybus.query.query import EVERYTHING, Query
from memorybus.text.display import event_name

from memorybus_console.actions.action import Action, Ground
from memorybus_console.operations.archive import import_archive
from memorybus_console.operations.forget import (
    Eraser,
    Erasure,
    ErasureOwner,
    ErasurePlan,
    PlannedErasure,
    plan_erasure,
)
from memorybus_console.operations.ingest.new_events import ImportResult
from memorybus_console.operations.memories import amending
from memorybus_console.operations.memories.amending import (
    AmendmentResult,
    DraftEvent,
    MemoryAction,
    MemoryAmendment,
)
from memorybus_console.operations.memories.browsing import KeptMemory
from memorybus_console.result import HIDDEN, Result


class PlannedAmendment(Result, frozen=True):
    """What would be done to a memory.

    Attributes:
        content: the right text; "" if it is deleted.
    """

    memory: KeptMemory
    content: str
    events: Annotated[tuple[DraftEvent, ...], HIDDEN]
    effects: dict[str, str]
    stays: tuple[str, ...]
    executed: bool = False

    def facts(self) -> dict[str, str]:
        facts = {self.memory.kind or "memory": self.memory.text}
        if self.content:
            facts["correct to"] = self.content
        if self.memory.event:
            facts["came from"] = f"memorybus events get {self.memory.event}"
        names = ", ".join(event_name(draft.event) for draft in self.events)
        return facts | {"publishes": names} | self.effects | {"stays": "; ".join(self.stays)}

    def is_plan(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class AmendMemory(Action[PlannedAmendment, AmendmentResult]):
    """An act on one memory, which its event names, or which was found already."""

    recorded = ("event", "provider")
    action: ClassVar[MemoryAction]

    event: str
    provider: str
    text: str = ""  # if several memories came from the event: the one that contains this text
    memory: KeptMemory | None = None
    content: str = ""

    def plan(self, ground: Ground) -> PlannedAmendment:
        plan = self._amendment(ground)
        return PlannedAmendment(plan.memory, plan.content, plan.drafts, plan.effects, plan.stays)

    def carry_out(self, ground: Ground) -> AmendmentResult:
        plan = self._amendment(ground)
        return amending.carry_out(ground.settings, plan, wait=ground.wait, clock=ground.clock)

    def _amendment(self, ground: Ground) -> MemoryAmendment:
        settings = ground.settings
        memory = self.memory or amending.find_memory_of_event(
            settings, self.provider, self.action, self.event, self.text
        )
        return amending.plan_amendment(settings, self.action, memory, self.content)


class CorrectMemory(AmendMemory):
    """Correct a memory."""

    title = "correct memory"
    action = "correct"


class DeleteMemory(AmendMemory):
    """Delete a memory, and all others from the same event."""

    title = "delete memory"
    action = "delete"


@dataclass(frozen=True, kw_only=True)
class Forget(Action[PlannedErasure, Erasure]):
    """Erase a person or an agent from history, providers, dead letters and cached recalls."""

    title = "forget"
    recorded = ("user", "agent", "workspace")

    user: str | None = None
    agent: str | None = None
    workspace: str | None = None

    def plan(self, ground: Ground) -> PlannedErasure:
        plan = self._erasure(ground)
        return PlannedErasure(
            plan.found.events, plan.found.session_count, len(plan.letters), list(plan.instances)
        )

    def carry_out(self, ground: Ground) -> Erasure:
        """Erase them; a part that fails is reported, and the other parts are done."""
        eraser = Eraser(
            ground.settings, ground.wait, lambda step: ground.progress(step, 0, 0), ground.clock
        )
        return eraser.erase(self._erasure(ground), self.reason, ground.operator)

    def _erasure(self, ground: Ground) -> ErasurePlan:
        owner = ErasureOwner(self.user, self.agent, self.workspace)
        return plan_erasure(ground.settings, owner)


@dataclass(frozen=True, kw_only=True)
class ImportArchive(Action[ImportResult, ImportResult]):
    """Publish the events of an archive into this log, in order; skip those that it has already."""

    title = "import archive"
    recorded = ("directory",)

    directory: Path
    query: Query = EVERYTHING

    def plan(self, ground: Ground) -> ImportResult:
        return self._import(ground, execute=False)

    def carry_out(self, ground: Ground) -> ImportResult:
        return self._import(ground, execute=True)

    def _import(self, ground: Ground, *, execute: bool) -> ImportResult:
        read = 0

        def step() -> None:
            nonlocal read
            read += 1
            ground.progress("import", read, 0)

        return import_archive(ground.settings, self.directory, self.query, step, execute=execute)
