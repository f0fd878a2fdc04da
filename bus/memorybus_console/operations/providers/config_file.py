"""Edits ``memorybus.toml`` as a person would: comments and order stay; a write is atomic."""

import difflib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from memorybus import private
from memorybus.config.secrets_file import SECRETS_NAME, read_secrets
from memorybus.config.settings import FILE_NAME, Settings, config_path, load
from memorybus.errors import ConfigError
from tomlkit.exceptions import TOMLKitError


class FileEdit(msgspec.Struct, frozen=True):
    """A change of a file, before it is written.

    Attributes:
        before: its text now; "" if the file does not exist.
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


def edit_to_set_up(
    settings: Settings, name: str, kind: str, options: Mapping[str, Any]
) -> FileEdit:
    """Return the edit that gives an instance these options; a new one is the last to be recalled.

    Other entries of its table, comments and the order stay.

    Raises:
        ConfigError: the file cannot be read, or the instance is of another kind.
    """
    is_named, has_table = name in settings.providers, name in settings.provider
    if (is_named or has_table) and settings.provider_kind(name) != kind:
        raise ConfigError(
            f"{name} is a {settings.provider_kind(name)!r}: choose another name for a {kind!r}"
        )
    path, before, document = _read_document()
    is_kind_known = is_named or has_table or kind == name
    entries = options if is_kind_known else {"kind": kind, **options}
    if entries:
        tables = document.setdefault("provider", tomlkit.table(is_super_table=True))
        tables.setdefault(name, tomlkit.table()).update(entries)
    if not is_named:
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


def describe_block(settings: Settings, name: str) -> str:
    """Return what to delete so that no worker serves an instance; "" if nothing names it."""
    if name not in settings.providers:
        return ""
    table = f" and the table [provider.{name}]" if name in settings.provider else ""
    return (
        f"delete {name!r} from `providers`{table} in {_settings_path()} (and from "
        f"MEMORYBUS_PROVIDERS, if that is set)"
    )


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
    for name in [other for other in known if other not in names]:
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
