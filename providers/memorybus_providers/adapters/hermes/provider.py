"""Makes a Hermes plugin a provider of the bus.

::

    [provider.facts]
    kind = "hermes:holographic"
    hermes_python = "~/.hermes/hermes-agent/venv/bin/python"

Hermes's hooks take no event id, so a call that was interrupted is repeated, and may have its effect
twice (delivery ``blind``, G4). An event counts as applied once the threads that its hook began have
done their work. What a plugin keeps in memory counts, too, and goes with its process.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from memorybus import private
from memorybus.errors import ConfigError
from memorybus.events import (
    ContextCompressing,
    Delegated,
    Derived,
    MemoryCurated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)

from memorybus_providers.adapters.conversations import split_passages
from memorybus_providers.adapters.hermes import requests
from memorybus_providers.adapters.hermes.child.frames import CWD, OWNER_KEY
from memorybus_providers.adapters.hermes.children import Children
from memorybus_providers.adapters.hermes.homes import PluginHome, SessionNotes
from memorybus_providers.adapters.hermes.launch import find_python
from memorybus_providers.adapters.hermes.link import OwnersMixed
from memorybus_providers.adapters.hermes.options import PluginOptions
from memorybus_providers.adapters.hermes.plugins import KnownPlugin, describe_plugin, known_plugin
from memorybus_providers.adapters.hosted import as_object
from memorybus_providers.base import (
    Capabilities,
    HookContext,
    MemoryProvider,
    Placement,
    ProviderConfig,
    RecallContext,
    RecallScope,
    Recollection,
)
from memorybus_providers.dispatch import HOOKS
from memorybus_providers.options import option_rows, read_options
from memorybus_providers.owners import Owner, Owners, owner_of

_CHILD_SHARE = 0.8
"""The part of a call's deadline for the child: a child that hangs is killed before the deadline."""

_START_SECONDS = 20.0
_PROMPT_SECONDS = 4.0
"""Seconds for a plugin's block of a system prompt, including the start of its child."""

_MAX_ASKED_OWNERS = 256
"""The most owners for which the session of the last recall is remembered (G10)."""
_OURSELVES = "memorybus"
_RECALL_SESSION = "memorybus-recall"  # the session id of recalls that belong to no session


def host(target: str) -> type[MemoryProvider]:
    """Return the provider class of ``hermes:target``: a plugin's name or its directory.

    Raises:
        ConfigError: `target` is empty, or names our own plugin.
    """
    name = Path(target).name
    if not name:
        raise ConfigError(f"provider kind 'hermes:{target}' must name a plugin or its directory")
    if name == _OURSELVES:
        raise ConfigError("hosting the plugin `memorybus` would publish every event again")
    about = known_plugin(name)
    fields = {
        "kind": f"hermes:{target}",
        "plugin": name,
        "directory": target if "/" in target else "",
        "known": about,
        "capabilities": Capabilities(
            tools=True,
            reading_tools=about.reading_tools,
            handles=frozenset(HOOKS) - {Derived, MemoryCurated},
        ),
    }
    return type(f"Hosted_{name}", (HostedHermesProvider,), fields)


class HostedHermesProvider(MemoryProvider):
    """Passes every event to a plugin in a child process. `host` makes the class of a plugin."""

    kind = "hermes"
    placement: ClassVar[Placement] = "local"
    plugin: ClassVar[str] = ""  # the plugin's name
    directory: ClassVar[str] = ""  # its directory, if Hermes does not find it by name
    known: ClassVar[KnownPlugin] = KnownPlugin()  # what is known of the plugin

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._options: PluginOptions = read_options(config, PluginOptions)
        self._children = Children(config, self._options, self.plugin, self.directory, self.known)
        self._owners = Owners(config.home)
        self._asked: OrderedDict[Owner, str] = OrderedDict()
        self._notes = SessionNotes(config.home)
        self._is_open = False
        self.note = describe_plugin(self.plugin)

    # -- life -------------------------------------------------------------------------------------

    @classmethod
    def is_available(cls, config: ProviderConfig) -> bool:
        """Return whether Hermes's Python exists.

        Raises:
            MissingProvider: it does not exist; the message names the remedy.
        """
        return find_python(read_options(config, PluginOptions).hermes_python).is_file()

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options."""
        return option_rows(PluginOptions)

    def open(self) -> None:
        """Start the child of the instance's own HERMES_HOME, or connect to a running one.

        Raises:
            Unavailable: the child cannot be started, or cannot load the plugin.
        """
        self._is_open = True
        private.directory(self.config.home)
        self._children.ask(self._children.own_place, {"op": "ping"}, _START_SECONDS)

    def shutdown(self) -> None:
        """Disconnect from the children; each ends when nobody is connected to it."""
        self._is_open = False
        self._children.close()

    def backup_paths(self) -> Sequence[Path]:
        """Return the instance's directory and its HERMES_HOME."""
        return (self._children.own_place.directory, self._children.own_place.home)

    @property
    def fresh_by_home(self) -> bool:
        """Whether the memories are in the HERMES_HOME, and not in the account of a service."""
        return self.known.separation == "home"

    # -- write hooks ------------------------------------------------------------------------------

    def initialize(self, event: SessionStarted, ctx: HookContext) -> None:
        """Open the session's plugin instance."""
        owner = self._owner_of_event(ctx)
        before = self._notes.facts(owner, event.parent) if event.parent else {}
        self._notes.keep(owner, ctx.session.id, {**before, **requests.session_facts(event)})
        self._write("initialize", {}, ctx)

    def on_turn_start(self, event: TurnStarted, ctx: HookContext) -> None:
        """Tell the plugin that the user has spoken; some plugins need this."""
        self._write("on_turn_start", requests.turn_start_args(event), ctx)

    def sync_turn(self, event: TurnCompleted, ctx: HookContext) -> None:
        """Pass on a turn."""
        self._write("sync_turn", requests.turn_args(event, ctx), ctx)

    def on_memory_write(self, event: MemoryWritten, ctx: HookContext) -> None:
        """Pass on a write to the agent's stores."""
        self._write("on_memory_write", requests.memory_write_args(event, ctx), ctx)

    def on_session_switch(self, event: SessionSwitched, ctx: HookContext) -> None:
        """Let the session's instance continue with the new id."""
        self._notes.carry(self._owner_of_event(ctx), event.parent, ctx.session.id)
        self._write("on_session_switch", requests.switch_args(event), ctx)

    def on_pre_compress(self, event: ContextCompressing, ctx: HookContext) -> str:
        """Return what the plugin wants in the summary."""
        return str(self._write("on_pre_compress", requests.compress_args(event), ctx))

    def on_delegation(self, event: Delegated, ctx: HookContext) -> None:
        """Pass on what a sub-agent did."""
        self._write("on_delegation", requests.delegation_args(event), ctx)

    def on_session_end(self, event: SessionEnded, ctx: HookContext) -> None:
        """Tell the plugin that the session is over."""
        self._write("on_session_end", requests.session_end_args(event), ctx)

    # -- tools and recall -------------------------------------------------------------------------

    def prefetch(self, query: str, ctx: RecallContext) -> Sequence[Recollection]:
        """Return the passages of the plugin's text; none for an owner that it does not serve.

        In a recall for everyone, the plugin is asked for each owner for whom it has got events.
        """
        owners = [one for one in self._owners.owners_in(ctx.scope) if self._children.serves(one)]
        name = ctx.session.id if ctx.session else _RECALL_SESSION
        if ctx.session and len(owners) == 1:
            self._note_asked(owners[0], name)
        recollections: list[Recollection] = []
        for owner in owners:
            seconds = ctx.deadline * _CHILD_SHARE / len(owners)
            request = {"op": "recall", "query": query, "seconds": seconds / 2}
            with contextlib.suppress(OwnersMixed):  # a refused owner has no memories there
                text = self._ask_beside_lane(request, owner, name, seconds)
                recollections.extend(Recollection(part) for part in split_passages(text))
        return recollections

    def system_prompt_block(self, scope: RecallScope) -> str:
        """Return the plugin's block of the system prompt; "" for an owner that it does not serve.

        Names that the scope leaves out are those of the instance's own owner. The request uses the
        session of the owner's last recall, so that the plugin need not begin another session.
        """
        first = self._options.owner
        asked = ((scope.agent, first.agent), (scope.user, first.user))
        named = (*asked, (scope.workspace, first.workspace))
        owner = Owner(*(own if one is None else one for one, own in named))
        if not self._children.serves(owner):
            return ""
        session_id = self._asked.get(owner, _RECALL_SESSION)
        return self._ask_beside_lane(
            {"op": "prompt", "seconds": 1.0}, owner, session_id, _PROMPT_SECONDS
        )

    def _note_asked(self, owner: Owner, session_id: str) -> None:
        self._asked[owner] = session_id
        self._asked.move_to_end(owner)
        if len(self._asked) > _MAX_ASKED_OWNERS:
            self._asked.popitem(last=False)

    def get_tool_schemas(self) -> Sequence[Mapping[str, Any]]:
        """Return the schemas of the plugin's tools; before `open`, a child is started for this.

        Raises:
            Unavailable: the child cannot be started, or cannot load the plugin.
        """
        try:
            found: list[Mapping[str, Any]] = self._children.ask(
                self._children.own_place, {"op": "tools"}, _START_SECONDS
            )
        finally:
            if not self._is_open:
                self.shutdown()
        return found

    def handle_tool_call(
        self, tool: str, arguments: Mapping[str, Any], ctx: HookContext
    ) -> Mapping[str, Any]:
        """Run a tool; an answer that is not a JSON object is returned as ``result``."""
        args = {"tool": tool, "arguments": dict(arguments)}
        if refused := self._children.refusal(owner_of(ctx.scope), tool, arguments):
            return {"error": refused}
        if tool in self.capabilities.reading_tools:
            seconds = ctx.deadline * _CHILD_SHARE
            request = {"op": "read", "args": args, "seconds": seconds / 2}
            owner = owner_of(ctx.scope)
            return as_object(self._ask_beside_lane(request, owner, ctx.session.id, seconds))
        return as_object(str(self._write("handle_tool_call", args, ctx)))

    # -- asking -----------------------------------------------------------------------------------

    def _owner_of_event(self, ctx: HookContext) -> Owner:
        """Return the owner of an event.

        Raises:
            Permanent: this instance does not serve the owner; nothing was stored for it.
        """
        owner = owner_of(ctx.scope)
        self._children.place_for(owner)
        return owner

    def _write(self, name: str, args: requests.Args, ctx: HookContext) -> Any:
        owner = owner_of(ctx.scope)
        place = self._children.place_for(owner)
        self._owners.note(owner)
        session = self._session(ctx.scope, ctx.session.id, place)
        request = {**requests.hook_request(name, args, session), "event": ctx.event_id}
        return self._children.ask(place, request, ctx.deadline * _CHILD_SHARE, ends_hung=True)

    def _ask_beside_lane(
        self, request: Mapping[str, Any], owner: Owner, session_id: str, seconds: float
    ) -> str:
        """Send a request that does not write; do not kill a child that hangs: lanes may use it."""
        place = self._children.place_for(owner)
        scope = Scope(owner.agent, owner.user, owner.workspace)
        session = self._session(scope, session_id, place)
        return str(self._children.ask(place, {**request, "session": session}, seconds))

    def _session(self, scope: Scope, session_id: str, place: PluginHome) -> requests.Args:
        """Return a session as the plugin sees it, with what is needed to keep its owner apart."""
        owner = owner_of(scope)
        known = self._notes.facts(owner, session_id)
        user_id = self._children.user_id(owner)
        told = requests.session_args(scope, session_id, place.home, user_id, known)
        return {
            **told,
            OWNER_KEY: {**self._children.owner_for_child(owner), CWD: known.get(CWD, "")},
        }
