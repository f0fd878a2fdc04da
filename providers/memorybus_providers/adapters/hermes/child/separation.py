"""Initialises plugin instances, and refuses those that would mix the memories of owners.

`plugins.KnownPlugin.separation` says how a plugin keeps owners apart. The plugin's own
configuration may undo that, with one name for everybody or one workspace for all agents. So this
module checks what the plugin has made of its configuration, before anything is written. The parent
describes the owner of a session:

========  ==================================================================================
name      the owner, for people
mark      the owner, as a short name that no other owner has
stranger  the person is not the one to whom the HERMES_HOME belongs
foreign   the agent or the workspace is another: this HERMES_HOME is a profile made for it
cwd       the working directory of the session's host; "" if unknown
========  ==================================================================================

All but the last are missing where everybody may share.
"""

import importlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from .failures import CallRefused
from .frames import CWD, MIXED, OWNER_KEY

_MAX_NAME_CHARS = 80
"""The most characters of a Honcho session's name before a mark; Honcho accepts 100."""

_NOT_PLAIN = re.compile("[^A-Za-z0-9_-]")
_PLAIN_KEY = re.compile("[A-Za-z0-9_:-]*[A-Za-z0-9_][A-Za-z0-9_:-]*")

SessionOwner = Mapping[str, Any]


def initialize(plugin: Any, session: Mapping[str, Any]) -> None:
    """Initialise an instance for a session.

    Raises:
        CallRefused: with its configuration, the plugin would mix the memories of two owners.
        Exception: any error of the plugin.
    """
    told = {name: value for name, value in session.items() if name != OWNER_KEY}
    opened = _INITIALIZERS.get(getattr(plugin, "name", ""), _initialize_plainly)
    opened(plugin, told, session.get(OWNER_KEY, {}))


def _initialize_plainly(plugin: Any, told: Mapping[str, Any], _: SessionOwner) -> None:
    plugin.initialize(**told)


def _initialize_holographic(plugin: Any, told: Mapping[str, Any], owner: SessionOwner) -> None:
    """Refuse a database outside of the HERMES_HOME, since other owners would share it."""
    plugin.initialize(**told)
    where = Path(plugin._store.db_path).resolve()  # noqa: SLF001
    elsewhere = not where.is_relative_to(Path(told["hermes_home"]).resolve())
    if elsewhere and (owner.get("stranger") or owner.get("foreign")):
        raise _refusal(plugin, owner, f"db_path is {where}", "let db_path begin with $HERMES_HOME")


def _initialize_mem0(plugin: Any, told: Mapping[str, Any], owner: SessionOwner) -> None:
    """Refuse a configured ``user_id``, which all persons would share."""
    plugin.initialize(**told)
    fixed = plugin._config.get("user_id")  # noqa: SLF001
    if fixed and (owner.get("stranger") or owner.get("foreign")):
        raise _refusal(
            plugin, owner, f"user_id is {fixed!r} for everybody", "take it out of mem0.json"
        )


def _initialize_retaindb(plugin: Any, told: Mapping[str, Any], owner: SessionOwner) -> None:
    """Refuse a project from the environment, which all profiles would share."""
    plugin.initialize(**told)
    project = plugin._client.project  # noqa: SLF001
    if owner.get("foreign") and project != f"hermes-{Path(told['hermes_home']).name}":
        raise _refusal(
            plugin, owner, f"the project is {project!r} for everybody", "take RETAINDB_PROJECT out"
        )


def _initialize_honcho(plugin: Any, told: Mapping[str, Any], owner: SessionOwner) -> None:
    """Check and adapt the configuration when the plugin resolves the name of its session.

    The plugin makes its session in a thread that `initialize` starts, and treats an exception there
    as its own failure. So a refusal is remembered and raised here.
    """
    refused: list[CallRefused] = []
    names: list[str] = []
    resolve = plugin._resolve_session_key  # noqa: SLF001

    def resolve_name(config: Any, session_id: str, **given: Any) -> str:
        """Return the Honcho session's name; later calls get the answer of the first."""
        try:
            _check_honcho(plugin, config, told, owner)
        except CallRefused as refusal:
            refused.append(refusal)
            raise
        if not names:
            names.append(_honcho_session(config, session_id, given, owner, resolve))
            _adapt_honcho_config(plugin, config, owner)
        return names[0]

    plugin._resolve_session_key = resolve_name  # noqa: SLF001
    plugin.initialize(**told)
    if refused:
        raise refused[0]


def _check_honcho(plugin: Any, config: Any, told: Mapping[str, Any], owner: SessionOwner) -> None:
    if owner.get("stranger") and config.pin_peer_name and config.peer_name:
        said = f"every person is the peer {config.peer_name!r}"
        raise _refusal(plugin, owner, said, "take pinUserPeer out of honcho.json")
    if not owner.get("foreign"):
        return
    client = importlib.import_module(type(plugin).__module__ + ".client")
    host = client.profile_host_key(Path(told["hermes_home"]).name)
    others = {client.HOST, *config.raw.get("hosts", {})} - {host}
    shared = {_workspace(config.raw, other) for other in others}
    if config.host != host or config.workspace_id in shared:
        said = f"the workspace {config.workspace_id!r} is another agent's as well"
        raise _refusal(plugin, owner, said, f"give hosts.{host} in honcho.json one of its own")


def _workspace(raw: Mapping[str, Any], host: str) -> str:
    block = raw.get("hosts", {}).get(host) or {}
    return str(block.get("workspace") or raw.get("workspace") or host)


def _honcho_session(
    config: Any, session_id: str, given: Mapping[str, Any], owner: SessionOwner, resolve: Any
) -> str:
    """Return the session's name as in Hermes, with a mark if another owner could have it."""
    key = given.get("gateway_session_key") or ""
    if key:
        name, own = resolve(config, session_id, **given), bool(_PLAIN_KEY.fullmatch(key))
    else:  # by the directory of Hermes, since this process's is the same for all persons
        title = given.get("session_title")
        cwd = owner.get(CWD) or os.getcwd()
        name = config.resolve_session_name(cwd=cwd, session_title=title, session_id=session_id)
        own = False
    name = name or session_id
    return name if own or not owner.get("stranger") else f"{name[:_MAX_NAME_CHARS]}-{owner['mark']}"


def _adapt_honcho_config(plugin: Any, config: Any, owner: SessionOwner) -> None:
    """Give a stranger its own peer, and upload none of the owner's memory files for it."""
    if not owner.get("stranger"):
        return
    config.session_strategy = "per-session"  # then it uploads no files; the name is set already
    given = plugin._lazy_init_kwargs  # noqa: SLF001
    user_id = given.get("user_id") or ""
    taken = {"", _NOT_PLAIN.sub("-", config.peer_name or ""), _NOT_PLAIN.sub("-", config.ai_peer)}
    if user_id not in config.user_peer_aliases and (user_id in taken or _NOT_PLAIN.search(user_id)):
        given["user_id"] = (
            f"{user_id or 'nobody'}-{owner['mark']}"  # else two persons could get the same peer
        )


def _refusal(plugin: Any, owner: SessionOwner, why: str, remedy: str) -> CallRefused:
    return CallRefused(
        MIXED,
        f"the plugin {plugin.name} does not keep {owner['name']} apart: {why}; {remedy}, "
        "configure an instance of its own, or set apart = false to let everybody share",
    )


_INITIALIZERS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], SessionOwner], None]]] = {
    "holographic": _initialize_holographic,
    "honcho": _initialize_honcho,
    "mem0": _initialize_mem0,
    "retaindb": _initialize_retaindb,
}
