"""The list of all actions."""

from typing import Any, Final

from memorybus_console.actions.action import Action
from memorybus_console.actions.curation import (
    AcceptRepetitions,
    PinMemory,
    RejectProposals,
    RunCurator,
    UndoCuration,
    UnpinMemory,
)
from memorybus_console.actions.dead_letters import DiscardLetters, EditLetter, RetryLetters
from memorybus_console.actions.history import DropCopy, DropGenerations, Rebuild, Replay, RollBack
from memorybus_console.actions.memories import CorrectMemory, DeleteMemory, Forget, ImportArchive
from memorybus_console.actions.providers import (
    MoveProvider,
    PauseProvider,
    RemoveProvider,
    ResumeProvider,
    RetryProviderNow,
)

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
    RejectProposals,
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
