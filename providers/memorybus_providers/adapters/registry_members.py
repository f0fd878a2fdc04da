"""Defines the nine-member contract, and a registry of providers that keep it.

The contract is the ``MemoryProvider`` protocol of a fork of Hermes Agent (``agent/memory/`` of
``souhailbouardi-prog/De`` at 4ce1a79; proposed to Hermes as NousResearch/hermes-agent#3958). The
registry here follows the rules of the fork's registry: it refuses duplicate names, drops a provider
that is unavailable or fails at the start, asks all providers in parallel within five seconds, and
leaves out of an answer what failed or is late. There is one difference: a failed write is not
ignored. It is reported to the bus, and the next try calls only the providers that have not taken
the write.

That protocol says of ``capabilities``: ``tool_names`` are the tools that a provider adds to those
the model sees, all of which are in the agent's own registry of tools;
``suppresses_local_writes`` leaves out the writes to MEMORY.md and USER.md, while
``on_memory_write`` is called all the same. The contract has no member that describes or runs a
tool. For a provider that also has Hermes's own two methods for this (``get_tool_schemas``,
``handle_tool_call``), these are used.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, get_args, runtime_checkable

from memorybus.clock import SYSTEM, Clock
from memorybus.events import Message, StoreName

from memorybus_providers.adapters.hosted import Caller, call_in_parallel, classify_error
from memorybus_providers.errors import Permanent, ProviderError, Transient, Unavailable

ENRICH_DEADLINE: Final = 5.0  # seconds in which all providers together must answer

COMPRESS_DEADLINE: Final = 120.0
"""The default of the seconds that a provider may take to save what is about to be compressed."""

SHUTDOWN_DEADLINE: Final = 15.0  # seconds in which all providers together must shut down

_MAX_REMEMBERED = 1_000
"""The most events for which it is remembered which providers have taken them, if not all have
(G10)."""

_STORES: Final[tuple[StoreName, ...]] = get_args(StoreName)

_log = logging.getLogger("memorybus")


@runtime_checkable
class RegisteredProvider(Protocol):
    """The contract: nine members. Each method may be a coroutine."""

    @property
    def name(self) -> str:
        """A short, unique name."""
        ...

    def is_available(self) -> bool:
        """Say without network access whether it is installed and configured."""
        ...

    def initialize(self, session_key: str, config: Mapping[str, Any]) -> Any:
        """Begin to serve a session; raise if that is not possible."""
        ...

    def shutdown(self) -> Any:
        """Release everything; idempotent."""
        ...

    def capabilities(self) -> Mapping[str, Any]:
        """Return ``tool_names`` and ``suppresses_local_writes``; both may be left out."""
        ...

    def enrich_turn(self, user_message: str, messages: Sequence[Message]) -> Any:
        """Return context for a turn, or None."""
        ...

    def on_memory_write(
        self, action: str, target: str, content: str | None, old_text: str | None = None
    ) -> Any:
        """Apply a write to the ``memory`` or the ``user`` store."""
        ...

    def on_turn_complete(self, user_message: str, assistant_response: str) -> Any:
        """Remember a turn."""
        ...

    def on_compress(self, messages: Sequence[Message], compression_count: int) -> Any:
        """Save the messages that are about to leave the model's context."""
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """A provider that brings tools, with Hermes's two methods in addition to the contract."""

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return OpenAI function schemas of all its tools."""
        ...

    def handle_tool_call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool; return an object, or the JSON of one."""
        ...


def shown_tools(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """Return the tools that a provider wants the model to see; any other is hidden."""
    return frozenset(capabilities.get("tool_names", ()))


def kept_alone(capabilities: Mapping[str, Any]) -> frozenset[StoreName]:
    """Return the stores that a provider keeps alone: those whose local writes it suppresses."""
    suppresses = capabilities.get("suppresses_local_writes", False)
    if isinstance(suppresses, Mapping):
        return frozenset(store for store in _STORES if suppresses.get(store))
    return frozenset(_STORES) if suppresses else frozenset()


class Registry:
    """The providers of one session key. One thread uses it, and `enrich_turn` starts others.

    Attributes:
        foreign_tools: tools that the providers name, but do not bring.
    """

    def __init__(self, caller: Caller, clock: Clock = SYSTEM) -> None:
        self._caller = caller
        self._clock = clock
        self._members: dict[str, RegisteredProvider] = {}
        self._tools: dict[str, ToolProvider] = {}
        self._started = False
        self._asked: set[str] = set()
        self._taken: OrderedDict[str, set[str]] = OrderedDict()
        self.foreign_tools: frozenset[str] = frozenset()

    def register(self, provider: RegisteredProvider) -> None:
        """Add a provider.

        Raises:
            ValueError: another provider has this name already.
            RuntimeError: `initialize_all` was called already.
        """
        if self._started:
            raise RuntimeError("providers are registered before initialize_all")
        if provider.name in self._members:
            raise ValueError(f"duplicate memory provider name: {provider.name!r}")
        self._members[provider.name] = provider

    def initialize_all(self, session_key: str, config_of: Callable[[str], Any]) -> None:
        """Start every provider with its configuration; drop those that cannot be started.

        Raises:
            Unavailable: there were providers, and none is left.
        """
        self._started = True
        why = {name: self._start(name, session_key, config_of(name)) for name in self._members}
        self._members = {name: self._members[name] for name, reason in why.items() if not reason}
        if why and not self._members:
            raise Unavailable("; ".join(f"{name}: {reason}" for name, reason in why.items()))

    def _start(self, name: str, session_key: str, config: Any) -> str:
        """Start one provider; return why it cannot be used, or an empty string."""
        member = self._members[name]
        try:
            if not self._call(name, member.is_available):
                raise Unavailable("is not available")
            self._call(name, member.initialize, session_key, config)
            self._register_tools(member, self._call(name, member.capabilities))
        except ProviderError as error:
            _log.warning("memory provider %r is dropped: %s", name, error)
            return str(error)
        return ""

    def _register_tools(self, member: RegisteredProvider, capabilities: Mapping[str, Any]) -> None:
        shown = shown_tools(capabilities)
        if isinstance(member, ToolProvider):
            self._tools = dict.fromkeys(shown, member) | self._tools
        else:
            self.foreign_tools |= shown

    @property
    def active_providers(self) -> list[RegisteredProvider]:
        """The providers in use, in the order of registration."""
        return list(self._members.values())

    def enrich_turn(
        self, user_message: str, messages: Sequence[Message], deadline: float = ENRICH_DEADLINE
    ) -> list[tuple[str, str]]:
        """Ask all providers in parallel; return a label and a text for each that has an answer.

        A provider that fails, is late, or still works on an earlier question is left out, so that
        none ever uses more than one thread (G10).

        Raises:
            ProviderError: all providers failed, which must not look like "no memories".
        """
        within = min(deadline, ENRICH_DEADLINE)
        calls = {
            name: partial(self._ask, name, member, user_message, messages)
            for name, member in self._members.items()
        }
        answers = call_in_parallel(calls, within, self._clock)
        failed = [
            classify_error(answer, name)
            for name, answer in answers.items()
            if isinstance(answer, Exception)
        ]
        for error in failed:
            _log.warning("a memory provider is left out of a recall: %s", error)
        if failed and len(failed) == len(answers):
            raise failed[0]
        return [
            (f"{name} memory", text)
            for name, text in answers.items()
            if isinstance(text, str) and text
        ]

    def _ask(self, name: str, member: RegisteredProvider, *args: Any) -> Any:
        if name in self._asked:
            raise Transient(f"{name} still works on an earlier question")
        self._asked.add(name)
        try:
            return self._call(name, member.enrich_turn, *args)
        finally:
            self._asked.discard(name)

    def tell(self, event_id: str, method: str, *args: Any, deadline: float) -> None:
        """Call a write hook of every provider that has not taken this event yet.

        Raises:
            ProviderError: at least one provider failed. It is raised after all were called; a
                `Transient` error is preferred, since another try may succeed.
        """
        taken = self._taken.get(event_id, set())
        failed = []
        for name, member in self._members.items():
            if name in taken:
                continue
            try:
                self._call(name, getattr(member, method), *args, deadline=deadline)
                taken.add(name)
            except ProviderError as error:
                failed.append(error)
        self._remember(event_id, taken if failed else set())
        if failed:
            raise next((error for error in failed if isinstance(error, Transient)), failed[0])

    def _remember(self, event_id: str, taken: set[str]) -> None:
        self._taken.pop(event_id, None)
        if taken:
            self._taken[event_id] = taken
        if len(self._taken) > _MAX_REMEMBERED:
            self._taken.popitem(last=False)

    def call_tool(self, tool: str, arguments: Mapping[str, Any], deadline: float) -> Any:
        """Run a tool that a provider shows.

        Raises:
            ProviderError: the error of the tool; `Permanent` if no provider shows this tool.
        """
        member = self._tools.get(tool)
        if member is None:
            raise Permanent(f"{tool[:64]!r} is hidden, or no tool: `tool_names` does not name it")
        return self._call(tool, member.handle_tool_call, tool, arguments, deadline=deadline)

    def shutdown_all(self, deadline: float = SHUTDOWN_DEADLINE) -> None:
        """Shut all providers down in parallel, and wait for them at most `deadline` seconds."""
        members, self._members = self._members, {}
        calls = {name: partial(self._call, name, m.shutdown) for name, m in members.items()}
        for name, answer in call_in_parallel(calls, deadline, self._clock).items():
            if isinstance(answer, Exception):
                _log.warning("memory provider %r did not shut down: %s", name, answer)

    def _call(
        self, name: str, method: Callable[..., Any], *args: Any, deadline: float = ENRICH_DEADLINE
    ) -> Any:
        what = f"{name} {getattr(method, '__name__', 'call')}"
        return self._caller.call(what, method, *args, deadline=deadline)
