"""Lists what is known of the plugins of Hermes 0.19, with one row for each plugin."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

Separation = Literal["plugin", "profile", "home", "no"]
"""How owners are kept apart.

``plugin``: the plugin does it, by ``user_id``. ``profile``: the plugin keeps persons apart by
``user_id``, and each agent and workspace has a HERMES_HOME, since the plugin uses the profile's
name. ``home``: each agent, person and workspace has a HERMES_HOME with its memories.
``no``: owners cannot be kept apart, since all share the account of a service. The child's
`separation` makes sure that a plugin's own configuration does not undo this.
"""


class KnownPlugin(msgspec.Struct, frozen=True):
    """What the bus knows of a plugin.

    Attributes:
        reading_tools: its tools that only read; calls of other tools are applied as events.
        common_tools: its tools for what all persons share; only the instance's own person may use
            them.
        peers: the allowed values of the argument ``peer`` of its tools; others would mean other
            persons.
    """

    separation: Separation = "home"  # see `Separation`
    reading_tools: frozenset[str] = frozenset()
    common_tools: frozenset[str] = frozenset()
    peers: frozenset[str] = frozenset()


def _tools(plugin: str, *names: str) -> frozenset[str]:
    return frozenset(f"{plugin}_{name}" for name in names)


PLUGINS: Final[Mapping[str, KnownPlugin]] = MappingProxyType(
    {
        "byterover": KnownPlugin(reading_tools=_tools("brv", "query", "status")),
        "hindsight": KnownPlugin("no", _tools("hindsight", "recall", "reflect")),
        # `fact_store` reads or writes, depending on an argument, so it counts as a writing tool.
        "holographic": KnownPlugin(),
        # `honcho_profile` writes if it is given a card.
        "honcho": KnownPlugin(
            "profile",
            _tools("honcho", "search", "context", "reasoning"),
            peers=frozenset(("user", "ai")),
        ),
        "mem0": KnownPlugin("plugin", _tools("mem0", "search")),
        "openviking": KnownPlugin("no", _tools("viking", "search", "read", "browse")),
        "retaindb": KnownPlugin(
            "profile",
            _tools("retaindb", "profile", "search", "context", "list_files", "read_file"),
            _tools(
                "retaindb", "upload_file", "list_files", "read_file", "ingest_file", "delete_file"
            ),
        ),
        "supermemory": KnownPlugin("no", _tools("supermemory", "search", "profile")),
    }
)

_KEEPS: Final = MappingProxyType(
    {"supermemory": "turns that count are in its memory until the session ends"}
)

NATIVE_KINDS: Final = frozenset(("hindsight", "holographic", "honcho", "mem0"))
"""The plugins for whose backends the bus has a kind of the same name."""


def known_plugin(name: str) -> KnownPlugin:
    """Return what is known of a plugin; the defaults for an unknown one."""
    return PLUGINS.get(name, KnownPlugin())


def describe_plugin(name: str) -> str:
    """Return the note that people see about a hosted plugin."""
    keeps = f"; {_KEEPS[name]}" if name in _KEEPS else ""
    own = f"; the bus has a kind {name!r} of its own" if name in NATIVE_KINDS else ""
    return f"hosted Hermes plugin {name}{keeps}{own}"
