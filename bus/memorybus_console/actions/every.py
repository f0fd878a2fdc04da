"""The list of all actions."""

from typing import Any, Final

from memorybus_console.actions.action import Action
from memorybus_console.actions.archive import ImportArchive
from memorybus_console.actions.curation import (
    AcceptRepetitions,
    PinMemory,
    RunCurator,
    UndoCuration,
    UnpinMemory,
)
from memorybus_console.actions.dead_letters import DiscardLetters, EditLetter, RetryLetters
from memorybus_console.actions.history import DropGenerations, Rebuild, RollBack
from memorybus_console.actions.memories import CorrectMemory, DeleteMemory, Forget
from memorybus_console.actions.providers import (
    MoveProvider,
    PauseProvider,
    RemoveProvider,
    ResumeProvider,
    RetryProviderNow,
)
from memorybus_console.actions.replay import DropCopy, Replay

ACTIONS: Final[tuple[type[Action[Any, Any]], ...]] = (
    PauseProvider,
    ResumeProvider,
    RetryProviderNow,
    MoveProvider,
    RemoveProvider,
    RetryLetters,
    DiscardLetters,
    EditLetter,
    CorrectMemory,
    DeleteMemory,
    Forget,
    RunCurator,
    PinMemory,
    UnpinMemory,
    AcceptRepetitions,
    UndoCuration,
    Rebuild,
    RollBack,
    DropGenerations,
    Replay,
    DropCopy,
    ImportArchive,
)
