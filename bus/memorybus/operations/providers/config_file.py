"""Edits ``memorybus.toml`` as a person would: comments and order stay; a write is atomic."""

import difflib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError

from memorybus import private
from memorybus.config.secrets_file import SECRETS_NAME, read_secrets
from memorybus.config.settings import FILE_NAME, Settings, config_path, load
from memorybus.errors import ConfigError


class FileEdit(msgspec.Struct, frozen=True):
    """A change of a file, before it is written.

    Attributes:
        path: the file.
        before: its text now; "" if the file does not exist.
        after: its text with the change.
    """

    path: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as ``diff -u`` shows it."""
        lines = difflib.unified_diff(
            self.before.splitlines(),
            self.after.splitlines(),
            self.path,
            self.path,
            lineterm="",
            n=1,
        )
        return "\n".join(lines)


def edit_to_add(settings: Settings, name: str, kind: str, options: Mapping[str, Any]) -> FileEdit:
    """Return the edit that adds an instance, as the last in the order of recall.

    Raises:
        ConfigError: the file cannot be read, or the name is in use.
    """
    if name in settings.providers:
        raise ConfigError(f"{name!r} is a provider instance already; see: memorybus provider ls")
    path, before, document = _read_document()
    tables = document.setdefault("provider", tomlkit.table(is_super_table=True))
    if name in tables:
        raise ConfigError(
            f"{path} has a table [provider.{name}] already; name it in `providers` there, or "
            f"choose another name"
        )
    table = tomlkit.table()
    if kind != name:
        table.add("kind", kind)
    for option, value in options.items():
        table.add(option, value)
    if table:
        tables[name] = table
    elif not tables:
        document.remove("provider")
    _write_provider_list(document, [*settings.providers, name])
    return FileEdit(str(path), before, tomlkit.dumps(document))


def edit_to_set_up(
    settings: Settings, name: str, kind: str, options: Mapping[str, Any]
) -> FileEdit:
    """Return the edit that gives an instance these options, and adds it if it is new.

    Other entries of its table, comments and the order stay.

    Raises:
        ConfigError: the file cannot be read, or the instance is of another kind.
    """
    if name in settings.providers and settings.provider_kind(name) != kind:
        raise ConfigError(
            f"{name} is a {settings.provider_kind(name)!r}: choose another name for a {kind!r}"
        )
    path, before, document = _read_document()
    if name not in document.get("provider", {}) and name not in settings.providers:
        return edit_to_add(settings, name, kind, options)
    if options:
        tables = document.setdefault("provider", tomlkit.table(is_super_table=True))
        if name not in tables:
            tables[name] = tomlkit.table()
        for option, value in options.items():
            tables[name][option] = value
    if name not in settings.providers:
        _write_provider_list(document, [*settings.providers, name])
    return FileEdit(str(path), before, tomlkit.dumps(document))


def edit_to_choose(names: list[str]) -> FileEdit:
    """Return the edit that makes these instances the providers; tables of others stay.

    Raises:
        ConfigError: the file cannot be read.
    """
    path, before, document = _read_document()
    _write_provider_list(document, names)
    return FileEdit(str(path), before, tomlkit.dumps(document))


def edit_secrets(path: Path, variables: Mapping[str, str]) -> FileEdit:
    """Return the edit that writes variables into a secrets file; its diff must not be shown.

    Raises:
        ConfigError: the file cannot be read, or others may read it.
    """
    read_secrets(path)
    _, before, document = _read_document(path)
    for name, value in variables.items():
        document[name] = value
    return FileEdit(str(path), before, tomlkit.dumps(document))


def secrets_path(settings: Settings) -> Path:
    """Return the secrets file: the one that the settings name, or one next to the settings file."""
    named = settings.secrets_file
    return Path(named).expanduser() if named else _settings_path().with_name(SECRETS_NAME)


def edit_to_remove(settings: Settings, name: str) -> FileEdit:
    """Return the edit that removes an instance from the list of providers, and its table.

    Raises:
        ConfigError: the file cannot be read.
    """
    path, before, document = _read_document()
    tables = document.get("provider", {})
    if name in tables:
        del tables[name]
        if not tables:
            document.remove("provider")
    if name in settings.providers:
        _write_provider_list(document, [one for one in settings.providers if one != name])
    return FileEdit(str(path), before, tomlkit.dumps(document))


def _settings_path() -> Path:
    return (config_path() or Path.cwd() / FILE_NAME).resolve()


def _read_document(at: Path | None = None) -> tuple[Path, str, tomlkit.TOMLDocument]:
    path = at or _settings_path()
    try:
        text = path.read_text() if path.exists() else ""
        return path, text, tomlkit.parse(text)
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _write_provider_list(document: tomlkit.TOMLDocument, names: list[str]) -> None:
    """Write the list of providers; in place if there is one, so that its comments stay."""
    known = document.get("providers")
    if known is None:
        document["providers"] = names  # tomlkit puts it before the first table
        return
    for name in [one for one in known if one not in names]:
        known.remove(name)
    for name in names:
        if name not in known:
            known.append(name)


def settings_after(edit: FileEdit, **given: Any) -> Settings:
    """Return the settings that an edit would result in.

    Raises:
        ConfigError: they would not be valid.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / FILE_NAME
        copy.write_text(edit.after)
        return load(file=copy, **given)


def write_edit(edit: FileEdit) -> None:
    """Write an edited file, completely or not at all.

    Raises:
        ConfigError: the file has changed since it was read.
        OSError: it cannot be written.
    """
    path = Path(edit.path)
    if (path.read_text() if path.exists() else "") != edit.before:
        raise ConfigError(f"{path} was changed meanwhile; run the command again")
    fresh = path.with_name(f".{path.name}.new")
    try:
        with open(fresh, "w", opener=private.opener) as file:
            file.write(edit.after)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            fresh.chmod(path.stat().st_mode & 0o777)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
