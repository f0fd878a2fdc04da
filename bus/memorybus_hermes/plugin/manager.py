"""A bus with the methods of Hermes's ``MemoryManager`` (``agent/memory_manager.py``).

It has the methods of 0.19 and of later releases, and accepts all their arguments.

It is for an agent that takes such a manager: the agent uses one of these instead of its own (see
`memory_managers`). Hermes itself does not need it, because it has the plugin.

What differs, and why: there is no thread between the agent and the bus, because every hook is one
local write (G9). So what would be queued is spooled already, a shutdown has nothing to drain, and
`flush_pending` waits until the log has everything, which is more than an empty queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybus.errors import SpoolError

from memorybus_hermes.masking import mask_hand_off
from memorybus_hermes.plugin import host
from memorybus_hermes.plugin.memory_tool import writes_of_call
from memorybus_hermes.plugin.provider import HermesMemory
from memorybus_hermes.plugin.shared import HermesProcess
from memorybus_hermes.transcripts.scaffolding import user_text

if TYPE_CHECKING:
    from memorybus import MemoryBus

_log = logging.getLogger("memorybus")

_FLUSH_SECONDS = 10.0  # seconds that `flush_pending` waits by default

_CHECKPOINT_VERSION = 2
"""The newest known version of Hermes's checkpoints, which save messages before a compression."""


def memory_managers(bus: MemoryBus) -> Callable[[], MemoryManager]:
    """Return a function that creates the managers of a bus; call it once for each agent.

    Call `memory_managers` once per bus, because the managers that one function creates share what
    they know of sessions and memory files. ::

        new_manager = memory_managers(bus)
        agent.memory_manager = new_manager()
    """
    process = HermesProcess(lambda _: bus, bus.clock)
    return lambda: MemoryManager(bus, process)


class MemoryManager:
    """The memory of one agent. Safe to call from any thread.

    No method raises, except `on_pre_compress` if a checkpoint is required.

    Args:
        bus: the bus; its owner closes it.
        process: what the managers of one bus share: sessions, and the watch over memory files.
    """

    def __init__(self, bus: MemoryBus, process: HermesProcess) -> None:
        self._bus = bus
        self._memory = HermesMemory(
            process=process, settings=lambda _: bus.settings, clock=bus.clock
        )
        self._down = False

    # -- providers --------------------------------------------------------------------------------

    def add_provider(self, provider: Any) -> None:
        """Refuse another provider, because the providers of the bus are named in its settings.

        The plugin of the bus itself is ignored; any other is refused with a warning, as Hermes
        refuses a second one.
        """
        if not isinstance(provider, HermesMemory):
            name = getattr(provider, "name", "?")
            _log.warning(
                "memory provider %r is not added: name it in the settings of memorybus "
                "(kind = 'hermes:%s'), and the workers run it",
                name,
                name,
            )

    @property
    def providers(self) -> list[HermesMemory]:
        return [self._memory]

    def get_provider(self, name: str) -> HermesMemory | None:
        """Return the provider of that name, or None."""
        return self._memory if name == self._memory.name else None

    # -- life -------------------------------------------------------------------------------------

    def initialize_all(self, session_id: str, **kwargs: Any) -> None:
        """Start a session, or continue one; `kwargs` as Hermes passes them."""
        home = host.active_home()
        arguments = {"hermes_home": str(home), **kwargs} if home else kwargs
        self._memory.initialize(session_id, **arguments)

    def initialize_all_for_inspection(self, session_id: str, **kwargs: Any) -> None:
        """Get ready to show prompt and tools; no session starts, and nothing is published."""
        self._memory.initialize_for_inspection(session_id, **kwargs)

    def flush_pending(self, timeout: float | None = None) -> bool:
        """Wait until everything published so far is in the log (G1: level ``logged``).

        If the log has taken everything, as far as this process knows, it returns at once, even if
        Redis is away: what Redis may have lost since is sent again without a flush.

        Returns:
            False if that takes more than `timeout` seconds (10 if None); everything is spooled.
        """
        if not self._bus.unsent:
            return True
        return self._bus.flush("logged", _FLUSH_SECONDS if timeout is None else timeout)

    def shutdown_all(self) -> None:
        """Close the session, and send what Redis takes at once; everything is spooled."""
        self._down = True
        self._memory.shutdown()

    @property
    def shutdown_drain_state(self) -> dict[str, Any]:
        """What a shutdown left undone, in Hermes's terms: always nothing."""
        status = "drained" if self._down else "not_started"
        counts = ("abandoned_writes", "abandoned_prefetches", "active_tasks")
        return {"status": status, **dict.fromkeys(counts, 0)}

    # -- turns ------------------------------------------------------------------------------------

    def build_system_prompt(self) -> str:
        """Return the note on memory and the providers' additions, the same for a whole session."""
        return self._memory.system_prompt_block()

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        self._memory.on_turn_start(turn_number, mask_hand_off(message), **kwargs)

    def prefetch_all(self, query: str, *, session_id: str = "") -> str:
        """Return warm recall for a turn, escaped and without a fence, or ""."""
        words = mask_hand_off(_spoken_text(query))
        return self._memory.prefetch(words, session_id=session_id) if words else ""

    def describe_recall(self) -> str:
        """Return a line for the person about what `prefetch_all` returned last, or ""."""
        status = self._memory.recall_status()
        if status is None:
            return ""
        memories = "1 memory" if status.count == 1 else f"{status.count} memories"
        return f"{status.glyph} {status.provider_label} — recalled {memories}"

    def queue_prefetch_all(self, query: str, *, session_id: str = "") -> None:
        """Ask for recall for the next turn."""
        if said := _spoken_text(query):
            self._memory.queue_prefetch(mask_hand_off(said), session_id=session_id)

    def sync_all(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
        turn_author: Mapping[str, Any] | None = None,
    ) -> None:
        """Publish a completed turn; one that only carries scaffolding is skipped."""
        if said := _spoken_text(user_content):
            said, answer, transcript = mask_hand_off((said, assistant_content, messages))
            self._memory.sync_turn(
                said,
                answer,
                session_id=session_id,
                messages=transcript,
                turn_author=turn_author,
            )

    # -- sessions ---------------------------------------------------------------------------------

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Publish the end of a session, unless it is a part of a compression."""
        self._memory.on_session_end(messages)

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """Follow the agent to another session, or to the next epoch of this one."""
        self._memory.on_session_switch(
            new_session_id,
            parent_session_id=parent_session_id,
            reset=reset,
            rewound=rewound,
            **kwargs,
        )

    def commit_session_boundary_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        new_session_id: str,
        parent_session_id: str = "",
        reason: str = "new_session",
    ) -> None:
        """End a session and begin the next, in this order; both are published on return."""
        self.on_session_end(messages or [])
        self.on_session_switch(
            new_session_id, parent_session_id=parent_session_id, reset=True, reason=reason
        )

    def supports_pre_compress_checkpoint(self, api_version: int = _CHECKPOINT_VERSION) -> bool:
        """Return whether `on_pre_compress` saves messages durably, in a version that is known."""
        return api_version <= _CHECKPOINT_VERSION

    def on_pre_compress(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        evidence_messages: Sequence[Mapping[str, Any]] | None = None,
        require_checkpoint: bool = False,
        checkpoint_api_version: int = _CHECKPOINT_VERSION,
    ) -> str:
        """Save the messages durably, then return what providers want kept in the summary.

        Args:
            evidence_messages: those that people and the model wrote; not used, because all
                messages are saved.
            require_checkpoint: whether to raise an error if the messages cannot be saved.

        Raises:
            SpoolError: the messages are not saved; only with `require_checkpoint`.
        """
        if require_checkpoint and not self.supports_pre_compress_checkpoint(checkpoint_api_version):
            raise SpoolError(
                f"checkpoints of version {checkpoint_api_version} are required, and "
                f"{_CHECKPOINT_VERSION} is the newest that is known; upgrade memorybus"
            )
        return self._memory.on_pre_compress(
            mask_hand_off(messages), require_checkpoint=require_checkpoint
        )

    def on_delegation(
        self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any
    ) -> None:
        """Publish what a sub-agent did."""
        task, result = mask_hand_off((task, result))
        self._memory.on_delegation(task, result, child_session_id=child_session_id, **kwargs)

    # -- memory and tools -------------------------------------------------------------------------

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Publish a write of the agent's memory tool."""
        content, metadata = mask_hand_off((content, metadata))
        self._memory.on_memory_write(action, target, content, metadata)

    def notify_memory_tool_write(
        self,
        tool_result: Any,
        tool_args: dict[str, Any],
        *,
        build_metadata: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        """Publish what a call of the memory tool wrote, if its result says that it did."""
        for write in writes_of_call(tool_result, tool_args):
            metadata = _metadata(build_metadata)
            metadata.pop("previous_content", None)  # only what the tool's result says
            metadata |= write.old_entry_metadata
            self.on_memory_write(write.action, write.target, write.content, metadata)

    def get_all_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools of all providers, except those with names that Hermes reserves."""
        return self._memory.get_tool_schemas()

    def get_all_tool_names(self) -> set[str]:
        return {schema["name"] for schema in self.get_all_tool_schemas()}

    def has_tool(self, tool_name: str) -> bool:
        return tool_name in self.get_all_tool_names()

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Call a provider's tool; the answer is JSON in every case."""
        return self._memory.handle_tool_call(tool_name, mask_hand_off(args), **kwargs)


def _spoken_text(text: object) -> str:
    """Return what the person said; "" for anything that is not text, as Hermes does."""
    return user_text(text) if isinstance(text, str) else ""


def _metadata(build: Callable[[], dict[str, Any]] | None) -> dict[str, Any]:
    """Return a write's provenance, empty if it cannot be built; the write is published anyway."""
    try:
        return dict(build()) if build else {}
    except Exception:
        _log.exception("memorybus: a memory write has no provenance")
        return {}
