"""Hosts a plugin and answers the parent's requests: hooks, recalls, tools, system prompt blocks."""

import contextlib
import importlib
import logging
import shlex
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import hooks
from .failures import UNAVAILABLE, CallRefused
from .instances import PluginInstance, PluginInstances
from .watch import Watch, WatchedCall

Request = Mapping[str, Any]

_MAX_ANSWERS = 16  # the most answers that are kept in case a request is repeated

_THREADS_PER_INSTANCE = 2
"""The most threads that earlier calls may leave for each instance that may be open."""

HOOKS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "handle_tool_call": hooks.handle_tool_call,
    "on_delegation": hooks.on_delegation,
    "on_memory_write": hooks.on_memory_write,
    "on_pre_compress": hooks.on_pre_compress,
    "on_session_end": hooks.on_session_end,
    "on_session_switch": hooks.on_session_switch,
    "on_turn_start": hooks.on_turn_start,
    "sync_turn": hooks.sync_turn,
}


class Plugin:
    """One plugin of a Hermes installation.

    Args:
        name: its name in Hermes, or in the catalog from which Hermes installs plugins.
        directory: its directory, if it is none that Hermes or the person has; else "".
        home: the HERMES_HOME from which it reads.
        person: the HERMES_HOME into which the person installs plugins.
    """

    def __init__(self, name: str, directory: str, home: Path, person: Path) -> None:
        """Find the plugin, in the order in which Hermes does: bundled ones come first.

        Raises:
            ImportError: this Python has no Hermes.
            CallRefused: there is no such plugin; the message names the command that installs it.
        """
        self.name = name
        self._home = home
        self._memory = importlib.import_module("plugins.memory")
        logging.getLogger(self._memory.__name__).setLevel(logging.DEBUG)  # it says why it failed
        given = directory or self._memory.find_provider_dir(name) or person / "plugins" / name
        self.directory = Path(given)
        if not (self.directory / "__init__.py").is_file():
            raise CallRefused(UNAVAILABLE, _why_missing(name, directory, person))

    @property
    def package(self) -> str:
        """The name under which Hermes has imported the plugin; it differs between releases."""
        init = str(self.directory / "__init__.py")
        modules = list(sys.modules.items())
        return next((n for n, m in modules if getattr(m, "__file__", None) == init), self.name)

    def make(self) -> Any:
        """Return an instance, not initialised yet.

        Raises:
            CallRefused: the plugin cannot be loaded, or reports that it is not available.
        """
        made = self._memory._load_provider_from_dir(self.directory)  # noqa: SLF001
        if made is None:
            raise CallRefused(UNAVAILABLE, f"Hermes could not load the plugin {self.name!r}")
        if not made.is_available():
            raise CallRefused(UNAVAILABLE, self._why_unavailable(made))
        return made

    def _why_unavailable(self, made: Any) -> str:
        ask = getattr(made, "unavailable_reason", None)
        reason = ask() if callable(ask) else ""
        return (
            f"the plugin {self.name!r} is not available: "
            f"{reason or 'its packages, its keys or its configuration are missing'}; it reads "
            f"{self._home}: let the option hermes_home name the HERMES_HOME in "
            "which it is set up, or the option env the variables of its keys"
        )


class Host:
    """Answers requests of any number of connections; one write at a time.

    Args:
        plugin: see `Plugin`.
        watch: observes the threads and errors that calls leave behind.
        limit: the most instances that stay open.
        synchronous: whether a write is over when its hook returns, also if the plugin does not
            declare it by an attribute ``synchronous``.

    Attributes:
        exhausted: whether dropped instances have left so many threads that a new process should
            replace this one (G10).
    """

    def __init__(self, plugin: Plugin, watch: Watch, limit: int, *, synchronous: bool) -> None:
        self._plugin = plugin
        self._watch = watch
        self._limit = limit
        self._synchronous = synchronous
        self.exhausted = False
        self._done: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._writes = threading.Lock()
        self._instances = PluginInstances(plugin.make, watch, limit)
        self._answers: dict[str, Callable[[Request], Any]] = {
            "hook": self._hook,
            "ping": lambda _: None,
            "prompt": self._prompt,
            "read": self._read,
            "recall": self._recall,
            "tools": self._tools,
        }

    def answer(self, request: Request) -> Any:
        """Return the answer to a request.

        Raises:
            BaseException: any error that the plugin raises, or reports in its log.
        """
        return self._answers[request["op"]](request)

    def close(self) -> None:
        """Close all instances."""
        self._instances.close()

    def _hook(self, request: Request) -> Any:
        done = request["hook"], request["event"]
        with self._writes:
            if done not in self._done:  # if it is, the caller died before it got the answer
                self._done[done] = self._run_hook(request)
            if len(self._done) > _MAX_ANSWERS:
                self._done.popitem(last=False)
            return self._done[done]

    def _run_hook(self, request: Request) -> Any:
        name, args, session = request["hook"], dict(request["args"]), request["session"]
        switches = name == "on_session_switch"
        instance = (
            self._instances.begin_switch(args["parent"], session)
            if switches
            else self._instances.instance_for(session)
        )
        if instance is None or name == "initialize":
            return None  # a new instance got all of this by `initialize`, as in Hermes
        with instance.lock:
            value = self._run_write(instance, request, _with_transcript(instance, name, args))
        if switches:
            self._instances.finish_switch(args["parent"], session)
        return value

    def _run_write(self, instance: PluginInstance, request: Request, args: dict[str, Any]) -> Any:
        name = request["hook"]
        try:
            with self._watch.call(name, request["event"], writes=True) as call:
                value = self._apply(instance, call, args)
        except BaseException:
            self._after_failure(instance)
            raise
        _remember(instance, name, args)
        return value

    def _apply(self, instance: PluginInstance, call: WatchedCall, args: dict[str, Any]) -> Any:
        """Call a hook, and wait until the threads that it began have done their work."""
        waits = call.hook != "on_turn_start" and not self._is_synchronous(instance.plugin)
        if waits and not instance.has_begun:
            _await_opening(instance.opening)
            instance.has_begun = True
        call.opening = instance.opening
        value = HOOKS[call.hook](instance.plugin, args)
        if waits:
            call.join()
        if call.hook != "handle_tool_call":  # a tool reports failures in its answer
            call.raise_failure()
        return value

    def _is_synchronous(self, plugin: Any) -> bool:
        return self._synchronous or getattr(plugin, "synchronous", False) is True

    def _after_failure(self, instance: PluginInstance) -> None:
        """Drop the instance, since the bus brings the event again to another one."""
        instance.drop_plugin()
        self.exhausted = self._watch.left_threads > _THREADS_PER_INSTANCE * self._limit

    def _recall(self, request: Request) -> str:
        query, session_id = request["query"], request["session"]["session_id"]
        with self._instance_for_reading(request) as (plugin, call):
            hooks.queue_prefetch(plugin, query, session_id)
            call.join(request["seconds"])
            return hooks.recall(plugin, query, session_id)

    def _read(self, request: Request) -> str:
        with self._instance_for_reading(request) as (plugin, _):
            return hooks.handle_tool_call(plugin, request["args"])

    @contextlib.contextmanager
    def _instance_for_reading(self, request: Request) -> Iterator[tuple[Any, WatchedCall]]:
        """Yield a session's plugin for a call that does not write, once no other call uses it."""
        with self._watch.call(request["op"], writes=False) as call:
            instance = self._instances.instance_for(request["session"])
            if not instance.lock.acquire(timeout=request["seconds"]):
                raise CallRefused(UNAVAILABLE, "the plugin is busy with this session")
            try:
                if instance.plugin is None:
                    raise CallRefused(UNAVAILABLE, "the plugin's last write failed")
                yield instance.plugin, call
            finally:
                instance.lock.release()

    def _prompt(self, request: Request) -> str:
        with self._instance_for_reading(request) as (plugin, _):
            block = plugin.system_prompt_block()
        return block if isinstance(block, str) else ""

    def _tools(self, request: Request) -> Any:
        return self._plugin.make().get_tool_schemas()


def _await_opening(opening: WatchedCall) -> None:
    """Wait until a plugin has begun its session; before that, it may drop a turn silently."""
    opening.join()
    if opening.failures:
        reason = f"the plugin could not begin its session: {opening.failures[0]}"
        raise CallRefused(UNAVAILABLE, reason) from opening.failures[0]


def _with_transcript(instance: PluginInstance, name: str, args: dict[str, Any]) -> dict[str, Any]:
    """Add the conversation so far to the arguments of hooks to which Hermes passes all of it."""
    if name == "sync_turn":
        return args | {"messages": [*instance.transcript, *args["messages"]]}
    if name == "on_session_end" and not args["messages"]:
        return args | {"messages": instance.transcript}
    return args


def _remember(instance: PluginInstance, name: str, args: Mapping[str, Any]) -> None:
    if name == "sync_turn":
        instance.keep_transcript(args["messages"])
    if name == "on_session_end" or (name == "on_session_switch" and args["reset"]):
        instance.keep_transcript([])


def _why_missing(name: str, directory: str, person: Path) -> str:
    if directory:
        return f"Hermes has no memory plugin {name!r} in {directory}"
    own = Path.home() / ".hermes"
    home = "" if person == own else f"HERMES_HOME={shlex.quote(str(person))} "
    return (
        f"neither Hermes nor {person / 'plugins'} has a memory plugin {name!r}: "
        f"run `{home}hermes plugins install {name}`"
    )
