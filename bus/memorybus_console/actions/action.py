"""Something that an operator changes: planned, recorded in the log, and carried out.

The commands, the page and `memorybus top` walk the same actions, so that the plan, its wording, its
record and the question before it exist once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec
from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MemoryBusError
from memorybus.events import OperatorActed
from memorybus.ids import NewId, new_id
from memorybus.text.redact import masked

from memorybus_console.operations.stores import record_act

P_co = TypeVar("P_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)

ShowProgress = Callable[[str, int, int], None]
"""Receives the step, how much of it is done, and the total; 0 if that is unknown."""

_MAX_CHARS: Final = 1_000
"""The most characters of a reason, a name or an error that the log records."""


def no_progress(step: str, done: int, total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Ground:
    """Where an action is carried out, and by whom."""

    settings: Settings
    operator: str
    wait: float = 60.0  # the most seconds to wait for workers
    progress: ShowProgress = no_progress
    clock: Clock = SYSTEM
    new_id: NewId = new_id  # makes ids of requests


@dataclass(frozen=True, kw_only=True)
class Action(ABC, Generic[P_co, R_co]):
    """One act with its arguments; `P_co` is its plan, `R_co` its result.

    Attributes:
        recorded: the arguments that the log records: names and ids, never what a person said.
        is_harmless: whether it loses nothing and is easily undone, so that nobody is asked first.
    """

    title: ClassVar[str]  # the act, as the log records it: "pause provider"
    recorded: ClassVar[tuple[str, ...]] = ()
    is_harmless: ClassVar[bool] = False
    needs_reason: ClassVar[bool] = False  # whether the operator has to say why

    reason: str = ""  # why, in the operator's words

    @abstractmethod
    def plan(self, ground: Ground) -> P_co:
        """Return what would be done; change nothing."""

    @abstractmethod
    def carry_out(self, ground: Ground) -> R_co:
        """Do it; `perform` calls this, after it has recorded the act."""

    def question(self) -> str:
        """Return what to ask an operator who has seen the plan."""
        return f"{self.title.capitalize()}?"

    def about(self) -> dict[str, str]:
        values = {name: getattr(self, name) for name in self.recorded}
        return {name: str(value)[:_MAX_CHARS] for name, value in values.items() if value}


def perform(action: Action[Any, R_co], ground: Ground) -> R_co:
    """Record an act in the log, and carry it out; record also that it failed.

    Raises:
        ConfigError: it needs a reason, and there is none.
        MemoryBusError: the log cannot be written, and nothing was done; or the act failed.
    """
    if action.needs_reason and not action.reason.strip():
        raise ConfigError(f"to {action.title}, give a reason (--reason): it is written to the log")
    record = OperatorActed(
        act=action.title,
        operator=ground.operator,
        reason=action.reason[:_MAX_CHARS],
        about=action.about(),
    )
    record_act(ground.settings, record)
    try:
        return action.carry_out(ground)
    except MemoryBusError as error:
        failed = masked(str(error), ground.settings.secrets)[:_MAX_CHARS]
        with suppress(MemoryBusError):  # the first error counts
            record_act(ground.settings, msgspec.structs.replace(record, failed=failed))
        raise
