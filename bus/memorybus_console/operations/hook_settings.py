"""Hooks in the settings of Claude Code and Codex; whatever else stands there keeps its bytes."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from memorybus import private
from memorybus.errors import ConfigError
from memorybus.ids import text_digest
from memorybus.msgspec_types import prepared

_PROGRAM: Final = "memorybus-hook"
_TIMEOUT: Final = 10
"""After so many seconds a host goes on without its hook; the hook itself ends sooner."""

_decode: Final = json.JSONDecoder().raw_decode


class HookHost(NamedTuple):
    """A program that starts hooks.

    Attributes:
        name: its name for the hook.
        folder: its folder, in a home or a project.
        settings: where the hooks stand, below its folder.
        transcripts: where its transcripts are, below its folder.
        steps: the steps of a session at which it starts them.
    """

    name: str
    folder: str
    settings: str
    transcripts: str
    steps: tuple[str, ...]


CLAUDE_CODE: Final = HookHost(
    "claude-code",
    ".claude",
    "settings.json",
    "projects",
    ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"),
)
CODEX: Final = HookHost(
    "codex", ".codex", "hooks.json", "sessions", ("SessionStart", "UserPromptSubmit", "Stop")
)


class _Kept(msgspec.Struct, frozen=True):
    """What stood in a file before we wrote into it, and after; None for no file."""

    before: str | None
    after: str


def hook_command(host: HookHost, folder: Path) -> str:
    """Return the command that a host starts.

    Raises:
        ConfigError: the program is not installed beside this Python.
    """
    program = Path(sys.executable).with_name(_PROGRAM)
    if not program.exists():
        raise ConfigError(f"{program} is missing: install memorybus again with this Python's pip")
    return shlex.join([str(program), host.name, str(folder)])


def write_hooks(file: Path, host: HookHost, folder: Path) -> bool:
    """Write the hooks into a host's settings; return whether that changed anything.

    Args:
        file: the settings.
        host: whose they are.
        folder: the hooks' own folder, which keeps what stood there before.

    Raises:
        ConfigError: the settings cannot be read as JSON, or the program is missing.
    """
    text = _read(file)
    changed = with_hooks(text or "{}\n", host.steps, hook_command(host, folder))
    if changed == text:
        return False
    before = None if text is None else without_hooks(text)
    private.write(_kept_file(file, folder), msgspec.json.encode(_Kept(before, changed)))
    _write(file, changed)
    return True


def remove_hooks(file: Path, folder: Path) -> bool:
    """Take the hooks out of a host's settings; return whether that changed anything.

    If nobody changed the file since, it is as it was before, or gone if there was none.

    Raises:
        ConfigError: the settings cannot be read as JSON.
    """
    text, kept_file = _read(file), _kept_file(file, folder)
    if text is None:
        return False
    changed: str | None = without_hooks(text)
    if kept_file.exists():
        kept = msgspec.json.decode(kept_file.read_bytes(), type=prepared(_Kept))
        changed = kept.before if kept.after == text else changed
        kept_file.unlink()
    if changed == text:
        return False
    if changed is None:
        file.unlink()
    else:
        _write(file, changed)
    return True


def _kept_file(file: Path, folder: Path) -> Path:
    return folder / f"settings-{text_digest(str(file.absolute()))}.json"


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: {error}") from error


def _write(file: Path, text: str) -> None:
    """Replace a file whole; one behind a link stays there, and keeps its mode."""
    target = Path(os.path.realpath(file))
    private.directory(target.parent)
    new = target.with_name(f".{target.name}.memorybus")
    private.write(new, text.encode())
    if target.exists():
        new.chmod(target.stat().st_mode & 0o777)
    new.replace(target)


# -- settings as text -----------------------------------------------------------------------------


class _Item(NamedTuple):
    """A member of an object, or an item of a list: where it, its value, and both end."""

    key: str
    begin: int
    value: int
    end: int


def with_hooks(text: str, steps: Sequence[str], command: str) -> str:
    """Return settings in which each step starts a command, once; pure.

    Raises:
        ConfigError: they are no JSON, or not as a host reads them.
    """
    if all(_commands(_hooks_of(text), step) == [command] for step in steps):
        return text
    text = without_hooks(text)
    for step in steps:
        hook = {"hooks": [{"type": "command", "command": command, "timeout": _TIMEOUT}]}
        entry = json.dumps(hook, ensure_ascii=False)
        hooks = _find(text, _start(text), "hooks")
        entries = hooks and _find(text, hooks.value, step)
        if entries:
            text = _insert(text, entries.value, entry)
        elif hooks:
            text = _insert(text, hooks.value, f'"{step}": [{entry}]')
        else:
            text = _insert(text, _start(text), f'"hooks": {{"{step}": [{entry}]}}')
    return text


def without_hooks(text: str) -> str:
    """Return settings without our hooks, and without what only held them; pure.

    Raises:
        ConfigError: they are no JSON, or not as a host reads them.
    """
    _hooks_of(text)
    while (smaller := _without_one(text)) is not None:
        text = smaller
    return text


def _without_one(text: str) -> str | None:
    """Return settings without the first of our hooks; None if there is none."""
    top = _start(text)
    hooks = _find(text, top, "hooks")
    for step in _items(text, hooks.value) if hooks else ():
        for entry in _items(text, step.value):
            inner = _find(text, entry.value, "hooks")
            for hook in _items(text, inner.value) if inner else ():
                if hooks and inner and _is_ours(_decode(text, hook.value)[0]):
                    places = (top, hooks.value, step.value, inner.value)
                    return _cut(text, tuple(zip(places, (hooks, step, entry, hook), strict=True)))
    return None


def _cut(text: str, path: Sequence[tuple[int, _Item]]) -> str:
    """Return a text without the last item of a path, or without the widest that only held it."""
    for depth in reversed(range(len(path))):
        at, item = path[depth]
        items = _items(text, at)
        if len(items) > 1 or depth == 0:
            break
    index = items.index(item)
    if index:
        return text[: items[index - 1].end] + text[item.end :]
    return text[: item.begin] + text[items[1].begin if len(items) > 1 else item.end :]


def _insert(text: str, at: int, new: str) -> str:
    """Return a text with one more item at the end of an object or a list, spaced as the others."""
    items = _items(text, at)
    if not items:
        return text[: at + 1] + new + text[at + 1 :]
    gap = text[at + 1 : items[0].begin] or " "
    return f"{text[: items[-1].end]},{gap}{new}{text[items[-1].end :]}"


def _find(text: str, at: int, key: str) -> _Item | None:
    """Return the member of an object; of several the last one counts, as for every reader."""
    return next((item for item in reversed(_items(text, at)) if item.key == key), None)


def _items(text: str, at: int) -> list[_Item]:
    """Return the members of the object, or the items of the list, that begins at a place."""
    items: list[_Item] = []
    if text[at] not in "{[":
        return items
    is_object, at = text[at] == "{", _blank(text, at + 1)
    while text[at] not in "]}":
        begin, key = at, ""
        if is_object:
            key, at = _decode(text, at)
            at = _blank(text, _blank(text, at) + 1)
        value = at
        at = _decode(text, at)[1]
        items.append(_Item(key, begin, value, at))
        at = _blank(text, at)
        at = _blank(text, at + 1) if text[at] == "," else at
    return items


def _start(text: str) -> int:
    return _blank(text, 0)


def _blank(text: str, at: int) -> int:
    """Return where the white space ends that begins at a place."""
    while text[at] in " \t\r\n":
        at += 1
    return at


def _hooks_of(text: str) -> Mapping[str, list[Any]]:
    """Return the hooks of settings.

    Raises:
        ConfigError: they are no JSON, or not as a host reads them.
    """
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the settings are no JSON: {error}; correct them first") from error
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise ConfigError("`hooks` in the settings is no object of lists; correct it first")
    return hooks


def _commands(hooks: Mapping[str, list[Any]], step: str) -> list[str]:
    """Return our commands at a step."""
    inner = (entry.get("hooks") for entry in hooks.get(step, ()) if isinstance(entry, dict))
    listed = (hook for each in inner if isinstance(each, list) for hook in each)
    return [hook["command"] for hook in listed if _is_ours(hook)]


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and f"{_PROGRAM} " in command
