"""ChatGPT's export: a conversation is a tree of messages, of which one branch was shown last.

``{"title", "create_time", "conversation_id", "current_node", "mapping": {ID: {"parent", "message":
{"id", "author": {"role", "name"}, "create_time", "content": {"content_type", "parts"}, "recipient",
"metadata"}}}}``
"""

from collections.abc import Mapping
from typing import Any

_FIELDS = ("id", "content", "create_time")
_SHOWN_TO = (None, "", "all")
"""The recipients of a message that the person saw; others are tools."""


def messages_of(conversation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of the branch that was shown last, in their order.

    Messages to tools and those that were hidden are left out.
    """
    nodes = {key: node for key, node in conversation["mapping"].items() if isinstance(node, dict)}
    messages = (node.get("message") for node in _branch(nodes, conversation.get("current_node")))
    return [_plain(one) for one in messages if isinstance(one, dict) and _is_shown(one)]


def _branch(nodes: dict[str, dict[str, Any]], leaf: object) -> list[dict[str, Any]]:
    """Return the nodes from the root to a leaf; to the last one if there is no such leaf.

    If no node says which one is before it, their order in the file counts.
    """
    if not any(isinstance(node.get("parent"), str) for node in nodes.values()):
        return list(nodes.values())
    at: object = leaf if isinstance(leaf, str) and leaf in nodes else next(reversed(nodes))
    path: dict[str, dict[str, Any]] = {}
    while isinstance(at, str) and at in nodes and at not in path:
        path[at] = nodes[at]
        at = nodes[at].get("parent")
    return [*path.values()][::-1]


def _is_shown(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    return message.get("recipient") in _SHOWN_TO and hidden is not True


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    author = message.get("author")
    kept = {name: message[name] for name in _FIELDS if message.get(name) is not None}
    name = author.get("name") if isinstance(author, dict) else None
    return kept | {"role": author} | ({"name": name} if isinstance(name, str) else {})
