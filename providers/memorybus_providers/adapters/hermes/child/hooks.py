"""Calls hooks as Hermes's MemoryManager does, but does not ignore their errors.

Hermes inspects two signatures (`sync_turn`, `on_memory_write`) before it calls them, and so does
this module. Keywords that Hermes always passes are dropped for hooks that do not take them.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .failures import PERMANENT, CallRefused

PluginHook = Callable[..., Any]


def sync_turn(plugin: Any, args: Mapping[str, Any]) -> None:
    """Pass on a turn; the messages only if the hook takes them (Hermes: ``sync_all``)."""
    keywords: dict[str, Any] = {"session_id": args["session_id"]}
    if args["messages"] and accepts(plugin.sync_turn, "messages"):
        keywords["messages"] = list(args["messages"])
    plugin.sync_turn(
        args["user"], args["assistant"], **accepted_keywords(plugin.sync_turn, keywords)
    )


def on_memory_write(plugin: Any, args: Mapping[str, Any]) -> None:
    """Pass on a write, with metadata as a keyword, as the fourth argument, or not at all."""
    values = (args["action"], args["target"], args["content"])
    metadata = dict(args["metadata"])
    mode = metadata_mode(plugin.on_memory_write)
    if mode == "keyword":
        plugin.on_memory_write(*values, metadata=metadata)
    elif mode == "positional":
        plugin.on_memory_write(*values, metadata)
    else:
        plugin.on_memory_write(*values)


def on_turn_start(plugin: Any, args: Mapping[str, Any]) -> None:
    """Tell the plugin that the user has spoken, with the details that the hook takes."""
    hook = plugin.on_turn_start
    hook(args["number"], args["message"], **accepted_keywords(hook, args["details"]))


def on_session_end(plugin: Any, args: Mapping[str, Any]) -> None:
    """Tell the plugin that a session is over."""
    plugin.on_session_end(list(args["messages"]))


def on_session_switch(plugin: Any, args: Mapping[str, Any]) -> None:
    """Pass on a session switch; as in Hermes, ``rewound`` is passed only if it is true."""
    keywords = {"parent_session_id": args["parent"], "reset": args["reset"]}
    keywords |= {"rewound": True} if args["rewound"] else {}
    keywords |= {"reason": args["reason"]} if args["reason"] else {}
    hook = plugin.on_session_switch
    hook(args["new_id"], **accepted_keywords(hook, keywords))


def on_pre_compress(plugin: Any, args: Mapping[str, Any]) -> str:
    """Return what the plugin wants in the summary."""
    text = plugin.on_pre_compress(list(args["messages"]))
    return text if isinstance(text, str) else ""


def on_delegation(plugin: Any, args: Mapping[str, Any]) -> None:
    """Pass on what a sub-agent did, with the details that the hook takes."""
    hook = plugin.on_delegation
    keywords = {"child_session_id": args["child_session"], **args["details"]}
    hook(args["task"], args["result"], **accepted_keywords(hook, keywords))


def handle_tool_call(plugin: Any, args: Mapping[str, Any]) -> str:
    """Return a tool's answer, which is JSON text by Hermes's contract.

    Raises:
        CallRefused: the plugin has no tool of this name; Hermes would not call it, either.
    """
    if args["tool"] not in map(tool_name, plugin.get_tool_schemas()):
        raise CallRefused(PERMANENT, f"the plugin has no tool {args['tool']!r}")
    answer = plugin.handle_tool_call(args["tool"], dict(args["arguments"]))
    return answer if isinstance(answer, str) else str(answer)


def tool_name(schema: Any) -> Any:
    """Return the name in a tool's schema, which may be wrapped in OpenAI's outer object (Hermes:
    ``normalize_tool_schema``).
    """
    if not isinstance(schema, dict):
        return None
    wrapped = schema.get("function")
    return (wrapped if isinstance(wrapped, dict) else schema).get("name")


def recall(plugin: Any, query: str, session_id: str) -> str:
    """Return what the plugin remembers for a query."""
    text = plugin.prefetch(query, **accepted_keywords(plugin.prefetch, {"session_id": session_id}))
    return text if isinstance(text, str) else ""


def queue_prefetch(plugin: Any, query: str, session_id: str) -> None:
    """Let the plugin fetch in advance what `prefetch` returns later, as many plugins do."""
    hook = plugin.queue_prefetch
    hook(query, **accepted_keywords(hook, {"session_id": session_id}))


def accepts(hook: PluginHook, keyword: str) -> bool:
    """Return whether a hook takes a keyword. If it cannot be inspected, say yes, as Hermes does in
    ``_provider_sync_accepts_messages``.
    """
    try:
        parameters = inspect.signature(hook).parameters
    except (TypeError, ValueError):
        return True
    if any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return True
    return keyword in parameters


def accepted_keywords(hook: PluginHook, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that a hook takes."""
    return {name: value for name, value in keywords.items() if accepts(hook, name)}


def metadata_mode(hook: PluginHook) -> str:
    """Return how a memory-write hook takes metadata, as Hermes finds it out in
    ``_provider_memory_write_metadata_mode``.
    """
    if accepts(hook, "metadata"):
        return "keyword"
    takers = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    parameters = inspect.signature(hook).parameters.values()
    return (
        "positional" if sum(parameter.kind in takers for parameter in parameters) >= 4 else "legacy"
    )
