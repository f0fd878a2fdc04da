"""Exports of ChatGPT and claude.ai: a conversation is a tree, of which one branch was shown last.

ChatGPT: ``{"title", "create_time", "conversation_id", "current_node", "mapping": {ID: {"parent",
"message": {"id", "author": {"role", "name"}, "create_time", "content": {"content_type", "parts"},
"recipient", "metadata"}}}}``. claude.ai: ``{"uuid", "name", "created_at",
"current_leaf_message_uuid", "chat_messages": [{"uuid", "parent_message_uuid", "sender", "text",
"content", "created_at", "attachments": [{"file_name"}], "files"}]}``.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, NamedTuple

_SHOWN_TO = (None, "", "all")
"""The recipients of a message that the person saw; others are tools."""


class _Node(NamedTuple):
    parent: object
    at: object
    message: Mapping[str, Any]


def chatgpt_messages(conversation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of the branch that was shown last, without hidden ones and calls."""
    nodes = {
        key: _Node(node.get("parent"), message.get("create_time"), message)
        for key, node in conversation["mapping"].items()
        if isinstance(node, dict)
        for message in [node["message"] if isinstance(node.get("message"), dict) else {}]
    }
    branch = _branch(nodes, conversation.get("current_node"))
    return [_plain(message) for message in branch if message and _is_shown(message)]


def claude_ai_messages(conversation: Mapping[str, Any]) -> list[Any]:
    """Return the messages of the branch that was shown last; a file stands for missing words."""
    messages = conversation["chat_messages"]
    nodes = {
        str(message.get("uuid")): _Node(
            message.get("parent_message_uuid"), message.get("created_at"), message
        )
        for message in messages
        if isinstance(message, dict)
    }
    if len(nodes) < len(messages):
        return list(messages)
    leaf = conversation.get("current_leaf_message_uuid")
    return [_with_files(message) for message in _branch(nodes, leaf)]


def _branch(nodes: Mapping[str, _Node], leaf: object) -> list[Mapping[str, Any]]:
    """Return the messages from the root to a leaf; to the newest one if there is no such leaf.

    If no node says which one is before it, their order in the file counts.
    """
    if not any(node.parent in nodes for node in nodes.values() if isinstance(node.parent, str)):
        return [node.message for node in nodes.values()]
    at: object = leaf if isinstance(leaf, str) and leaf in nodes else _newest(nodes)
    path: dict[str, _Node] = {}
    while isinstance(at, str) and at in nodes and at not in path:
        path[at] = nodes[at]
        at = nodes[at].parent
    return [node.message for node in path.values()][::-1]


def _newest(nodes: Mapping[str, _Node]) -> str:
    """Return the node with the latest time, of equal ones the last; without times the last one."""
    keys = list(nodes)[::-1]
    for kind in (int | float, str):
        timed = [(nodes[key].at, key) for key in keys if isinstance(nodes[key].at, kind)]
        if timed:
            return max(timed, key=itemgetter(0))[1]
    return keys[0]


def _is_shown(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return message.get("recipient") in _SHOWN_TO and hidden is not True


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    author = message.get("author")
    kept = {name: message[name] for name in ("id", "content", "create_time") if name in message}
    name = author.get("name") if isinstance(author, dict) else None
    return kept | {"role": author} | ({"name": name} if isinstance(name, str) else {})


def _with_files(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message; one that consists of files has their names as its words."""
    if message.get("text") or message.get("content"):
        return message
    listed = [message.get("attachments"), message.get("files")]
    files = [one for held in listed if isinstance(held, list) for one in held]
    names = [str(file.get("file_name") or "a file") for file in files if isinstance(file, dict)]
    return {**message, "text": "\n".join(f"[attached: {name}]" for name in names)}
