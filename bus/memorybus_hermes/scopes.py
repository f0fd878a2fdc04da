"""Whose a Hermes session is, by what Hermes passes to `initialize`, and its files' entries; pure.

==========  =============================================  ====================================
scope       Hermes                                         if Hermes passes none
==========  =============================================  ====================================
agent       ``agent_identity``, the profile                the setting `agent`
user        ``user_id``, else ``user_id_alt`` (gateways)   the setting `user`
workspace   ``agent_workspace``                            the setting `workspace`
platform    ``platform``: cli, telegram, …                 the setting `platform`
==========  =============================================  ====================================

Hermes passes `WORKSPACE` for everybody, so it names no workspace. ``user_name`` goes into each
turn. Chats and threads (``chat_id``, ``thread_id``, ``gateway_session_key``) are no scopes, because
their sessions have ids of their own. With everything else that Hermes passes they become the
session's details, for providers that use them to keep chats apart.

Releases after 0.20 also name the author of each turn: in a chat that several people share, the
scope of a turn is its author's. An author may be a bot or a plugin. It has a scope of its own,
because what it says is no person's memory, and it must see no person's memories.

A gateway may compress with a second agent of the session, which is told neither person nor chat:
`as_stored` adds what Hermes has stored of the session.
"""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec
from memorybus import Settings
from memorybus.events import Scope, StoreName, WriteAction
from memorybus.ids import derived_id, text_digest

from memorybus_hermes.home import WORKSPACE
from memorybus_hermes.transcripts.state_db import StoredSession

_NOT_THE_AGENT = frozenset({"cron", "subagent"})
_ONE_PERSON_CHATS = frozenset({"", "dm"})
"""Kinds of chats (``chat_type``) that have one person in them; a terminal names none."""


class Author(msgspec.Struct, frozen=True):
    """The author of the user's side of a turn, as far as Hermes names it."""

    id: str = ""  # the platform's id of a person, `bot:NAME`, `plugin:NAME`; "" if it is unknown
    name: str = ""
    is_bot: bool = False


_CARRIED_VALUES = frozenset(
    {
        *("session_id", "session_title", "platform", "user_id", "hermes_home"),
        *("agent_context", "agent_identity", "agent_workspace"),
    }
)
"""Values that the event, its scope or its session carries already, and the home's path."""

PERSONAL_DETAILS = frozenset({"user_name", "user_id_alt"})
"""Details of the session's own person, which do not apply to other people who speak in it."""


def scope_of(settings: Settings, arguments: Mapping[str, Any]) -> Scope:
    """Return the scope of a session, by the module's table.

    Args:
        arguments: what Hermes passes to `initialize`.
    """
    workspace = _text(arguments, "agent_workspace")
    return Scope(
        agent=_text(arguments, "agent_identity") or settings.agent,
        user=_text(arguments, "user_id") or _text(arguments, "user_id_alt") or settings.user,
        workspace=settings.workspace if workspace in ("", WORKSPACE) else workspace,
        platform=_text(arguments, "platform") or settings.platform,
    )


def as_stored(arguments: Mapping[str, Any], stored: StoredSession | None) -> Mapping[str, Any]:
    """Return what Hermes passes to `initialize`, completed by whose session it has stored.

    Args:
        stored: the session in ``state.db``; None if it has none.
    """
    names_person = _text(arguments, "user_id") or _text(arguments, "user_id_alt")
    if names_person or stored is None or not stored.user:
        return arguments
    return {**stored.details, **arguments, "user_id": stored.user, "platform": stored.source}


def identity_of(settings: Settings) -> str:
    """Return a digest of the settings that decide where a session's memories go, and whose."""
    place = str(settings.data_dir), settings.redis_url, settings.namespace
    owner = settings.agent, settings.user, settings.workspace, settings.platform
    return text_digest("\0".join((*place, *owner)))


def author_of(author: object) -> Author:
    """Return the author that Hermes names for a turn; an unknown one if it names none.

    Args:
        author: a mapping with ``id``, ``name`` and ``is_bot``; anything else names no author.
    """
    if not isinstance(author, Mapping):
        return Author()
    return Author(_text(author, "id"), _text(author, "name"), bool(author.get("is_bot")))


def author_scope(scope: Scope, author: Author) -> Scope:
    """Return the scope of a turn: its author's, or its session's if nobody else is named."""
    user = author.id or (f"bot:{author.name}" if author.is_bot else "")
    return msgspec.structs.replace(scope, user=user) if user else scope


def may_be_shared(arguments: Mapping[str, Any]) -> bool:
    """Return whether several people may speak in a session's chat."""
    return _text(arguments, "chat_type") not in _ONE_PERSON_CHATS


def details_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the other values that Hermes passes for a session, as texts, without objects."""
    return {
        name: str(value).strip()
        for name, value in arguments.items()
        if name not in _CARRIED_VALUES
        and isinstance(value, str | int)
        and not isinstance(value, bool)
    }


def is_primary(arguments: Mapping[str, Any]) -> bool:
    """Return whether a session is the agent's own conversation with a person.

    No other kind of session is remembered.
    """
    context = _text(arguments, "agent_context") or "primary"
    return context == "primary" and _text(arguments, "platform") not in _NOT_THE_AGENT


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    return "" if value is None else str(value).strip()


_DELIMITER = "\n§\n"

IMPORTED = {"origin": "import"}  # provenance of an entry that existed before the bus

FileEntries = tuple[str, ...]


class FileWrite(msgspec.Struct, frozen=True):
    """One write to a store, in the words of `MemoryWritten`."""

    action: WriteAction
    store: StoreName
    content: str = ""
    old_text: str = ""


def import_id(key: str, content: str) -> str:
    """Return the event id of an entry's import; every importer derives the same (G2)."""
    return derived_id("reconcile", key, text_digest(content))


def parse_entries(text: str) -> FileEntries:
    """Return the entries of a file, each once, in order."""
    entries = (entry.strip() for entry in text.replace("\r\n", "\n").split(_DELIMITER))
    return tuple(dict.fromkeys(entry for entry in entries if entry))


def apply_write(entries: FileEntries, write: FileWrite) -> FileEntries:
    """Return the entries after a write; a write whose old text is not found changes nothing."""
    content = write.content.strip()
    if write.action == "add":
        return entries if content in entries else (*entries, content)
    at = next((i for i, entry in enumerate(entries) if write.old_text.strip() in entry), None)
    if at is None:
        return entries
    new = (content,) if write.action == "replace" else ()
    return tuple(dict.fromkeys((*entries[:at], *new, *entries[at + 1 :])))


def find_changes(before: FileEntries, now: FileEntries, store: StoreName) -> list[FileWrite]:
    """Return the writes that turn some entries into others; a new order alone is no write.

    If another entry stands in the place of an old one, the old one counts as replaced. All other
    differences count as removals and additions.
    """
    gone, new = set(before) - set(now), set(now) - set(before)
    writes: list[FileWrite] = []
    matcher = SequenceMatcher(None, before, now, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            old = [entry for entry in before[i:j] if entry in gone]
            fresh = [entry for entry in now[k:m] if entry in new]
            writes += _pair_writes(old, fresh, store)
    return writes


def _pair_writes(old: Sequence[str], new: Sequence[str], store: StoreName) -> list[FileWrite]:
    both = min(len(old), len(new))
    return [
        *(FileWrite("replace", store, b, a) for a, b in zip(old, new, strict=False)),
        *(FileWrite("remove", store, "", entry) for entry in old[both:]),
        *(FileWrite("add", store, entry) for entry in new[both:]),
    ]


def is_same_write(write: FileWrite, reported: FileWrite) -> bool:
    """Return whether a change that was found in a file is the write that a hook reports."""
    if write.store != reported.store:
        return False
    if reported.action == "remove":
        return write.action == "remove" and reported.old_text.strip() in write.old_text
    return write.action != "remove" and write.content == reported.content.strip()
