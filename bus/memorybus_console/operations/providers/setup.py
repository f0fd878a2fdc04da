"""``memorybus provider setup``: writes instances into the settings after trying them.

The dialogue belongs to the surface. This module offers what the dialogue needs: the options of a
kind, the files as they would be, settings for a trial, and a function that writes each whole file.
"""

import difflib
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import tomlkit
from memorybus import private
from memorybus.config.path_names import check_name
from memorybus.config.secrets_file import SECRETS_NAME, is_variable, read_secrets
from memorybus.config.settings import FILE_NAME, CallLimits, Settings, config_path, load
from memorybus.errors import ConfigError, LogUnavailable, MissingProvider
from memorybus.processes.commands import (
    describe_instance,
    fetch_for_instance,
    list_kinds,
    try_instance,
)
from memorybus.processes.reports import KindOffer, OptionField, TrialStep, TrialTerms
from memorybus.registry.homes import home_elsewhere
from memorybus.registry.instances import Instance, live_name
from tomlkit.exceptions import TOMLKitError

from memorybus_console.operations.providers import lifecycle
from memorybus_console.operations.settings import documented
from memorybus_console.operations.stores import Stores, check_configured


class FileEdit(msgspec.Struct, frozen=True):
    """A change of a file, before it is written."""

    path: str
    before: str  # its text now; "" if the file does not exist
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
    listed = document.get("providers")
    if listed is None:
        document["providers"] = names  # tomlkit puts it before the first table
        return
    for name in [other for other in listed if other not in names]:
        listed.remove(name)
    for name in names:
        if name not in listed:
            listed.append(name)


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


def try_provider(settings: Settings, name: str, terms: TrialTerms) -> Iterator[TrialStep]:
    """Try the live instance of `name`; yield each step when it is done.

    This needs no Redis. If there is one, it says which copy is live, and where its state is.

    Raises:
        ConfigError: the settings do not name it, or its state lies elsewhere.
        MemoryBusError: the process that tries it ended without a result.
    """
    check_configured(settings, name)
    serves = _serving_instance(settings, name)
    yield from try_instance(settings, name, serves.name, serves.options, terms)


def _serving_instance(settings: Settings, name: str) -> Instance:
    """Return the live instance of a name; the name's own instance if Redis is away."""
    with suppress(LogUnavailable), Stores(settings) as stores:
        live = live_name(name, stores.instances.live())
        home = home_elsewhere(stores.homes.all().get(live), settings)
        if home is not None:
            raise ConfigError(
                f"the state of {name} is in {home.path} on {home.host}: run this there"
            )
        if live != name and (copy := stores.instances.get(live)) is not None:
            return copy
    return Instance(name=name, provider=name)


class Target(msgspec.Struct, frozen=True):
    """An instance that somebody wants to set up."""

    name: str
    kind: str


class SetupAnswers(msgspec.Struct, frozen=True):
    """The answers for an instance.

    Attributes:
        secrets: the values of environment variables, which go only into the secrets file.
    """

    target: Target
    options: dict[str, Any] = {}  # the options to write into its table; others stay as they are
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        """Name the secrets without their values."""
        return (
            f"SetupAnswers({self.target}, options: {sorted(self.options)}, {sorted(self.secrets)})"
        )


class SetupDraft(msgspec.Struct, frozen=True):
    """The edits of both files for an instance, not written yet."""

    target: Target
    is_new: bool
    since: str  # where in the history a new one begins: `beginning`, `now`, or a moment
    edit: FileEdit  # the edit of memorybus.toml
    secrets: FileEdit

    def __repr__(self) -> str:
        return f"SetupDraft({self.target}, {self.edit.path}, {self.secrets.path})"

    @property
    def changes(self) -> bool:
        return any(edit.before != edit.after for edit in (self.edit, self.secrets))


def parse_targets(settings: Settings, words: Sequence[str]) -> list[Target]:
    """Return the instances that arguments name: a configured one, ``KIND``, or ``NAME=KIND``.

    Raises:
        ConfigError: a name is not valid, or given twice.
    """
    targets = [_parse_target(settings, word) for word in words]
    names = [target.name for target in targets]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"{', '.join(sorted(twice))} is named twice; use NAME=KIND")
    return targets


def _parse_target(settings: Settings, word: str) -> Target:
    name, equals, kind = word.partition("=")
    if equals:
        return Target(check_name(name), kind)
    if word in settings.providers or word in settings.provider:
        return Target(word, settings.provider_kind(word))
    return Target(check_name(word.rpartition(":")[2].rpartition("/")[2].lower()), word)


def find_offers(settings: Settings, targets: Sequence[Target]) -> dict[str, KindOffer]:
    """Return the descriptions and options of these instances' kinds, with limits, by kind.

    Raises:
        MissingProvider: a kind does not exist, or what it needs is not installed.
    """
    kinds = [target.kind for target in targets]
    offers = {offer.kind: with_limits(offer) for offer in list_kinds(settings, kinds)}
    for offer in offers.values():
        if offer.missing:
            raise MissingProvider(offer.missing)
    return offers


def with_limits(offer: KindOffer) -> KindOffer:
    """Return an offer with the limits of calls added to its options, if its calls can be limited.

    Calls of a transactional provider cannot be limited: each is a transaction of a whole batch.
    """
    if offer.options is None or offer.missing or offer.delivery == "transactional":
        return offer
    limits = (
        OptionField(limit.name, limit.meaning, limit.default, hint=limit.unit)
        for limit in documented(CallLimits())
    )
    return msgspec.structs.replace(offer, options=(*offer.options, *limits))


def draft_setup(
    settings: Settings, answers: SetupAnswers, since: str = lifecycle.BEGINNING
) -> SetupDraft:
    """Return the edits that the answers need; write nothing.

    Raises:
        ConfigError: a file cannot be read, the instance is of another kind, or it cannot begin at
            `since`.
        LogUnavailable: Redis is away, and `since` is not the beginning.
    """
    target = answers.target
    is_new = target.name not in settings.providers
    if not is_new and since != lifecycle.BEGINNING:
        raise ConfigError(
            f"{target.name} is an instance already and continues where it is; --from is for new "
            f"instances"
        )
    lifecycle.check_beginning(settings, target.name, since)
    edit = edit_to_set_up(settings, target.name, target.kind, answers.options)
    secrets = edit_secrets(secrets_path(settings), answers.secrets)
    return SetupDraft(target, is_new, since, edit, secrets)


@contextmanager
def trial_settings(what: SetupDraft, given: Mapping[str, Any]) -> Iterator[Settings]:
    """Yield the settings as they would be, with a private copy of the secrets, for a trial.

    Raises:
        ConfigError: they would not be valid.
    """
    with TemporaryDirectory(prefix="memorybus-") as scratch:
        secrets = Path(scratch) / SECRETS_NAME
        private.write(secrets, what.secrets.after.encode())
        yield settings_after(what.edit, **{**given, "secrets_file": str(secrets)})


def check_draft(then: Settings, what: SetupDraft) -> None:
    """Make sure that the instance can be made with these settings, and fetch what it needs.

    Raises:
        ConfigError, MissingProvider: it cannot, or the environment overrides the providers.
        MemoryBusError: what it needs cannot be fetched.
    """
    if what.target.name not in then.providers:
        raise ConfigError(
            f"MEMORYBUS_PROVIDERS names the providers, so that those of {what.edit.path} do not "
            f"count; add {what.target.name} there"
        )
    describe_instance(then, what.target.name)
    fetch_for_instance(then, what.target.name)


def write_draft(settings: Settings, what: SetupDraft, by: str) -> None:
    """Write the secrets, then the settings, each file as a whole; running workers reread neither.

    Raises:
        ConfigError: a file was changed meanwhile, a copy has the name, or workers still serve a
            removed instance of that name.
        OSError: a file cannot be written.
        LogUnavailable: Redis is away, and the instance does not begin at the beginning.
    """
    if what.is_new:
        lifecycle.register_instance(settings, what.target.name, what.since, by)
    for edit in (what.secrets, what.edit):
        if edit.before != edit.after:
            write_edit(edit)


_FLAGS = {
    **dict.fromkeys(("yes", "y", "true", "on", "1"), True),
    **dict.fromkeys(("no", "n", "false", "off", "0"), False),
}
_ENDS = re.compile(r"_(env|var|variable)$")
_UNSAFE = re.compile(r"[^A-Z0-9]+")


def parse_answer(field: OptionField, text: str) -> Any:
    """Return the value of an answer.

    A choice may be given by its number in the list, from 1.

    Raises:
        ConfigError: the answer is not valid; the message says what is, and repeats no secret.
    """
    if field.secret:
        return _parse_variable(field, text)
    if field.choices:
        return _parse_choice(field, text)
    match field.kind_of_value:
        case "flag":
            return _parse_flag(field, text)
        case "number":
            return _parse_number(field, text)
        case "list":
            return _parse_list(text)
    return text


def _parse_variable(field: OptionField, text: str) -> str:
    name = text.removeprefix("$")
    if not is_variable(name):
        raise ConfigError(
            f"{field.key} takes the name of an environment variable, of letters, digits and _, and "
            f"no secret itself: that belongs into the secrets file (see --secret)"
        )
    return name


def _parse_choice(field: OptionField, text: str) -> Any:
    by_text = {str(choice): choice for choice in field.choices}
    by_number = {str(n): choice for n, choice in enumerate(field.choices, 1)}
    if text not in by_number | by_text:
        raise ConfigError(f"{field.key} must be one of: {', '.join(by_text)}")
    return (by_number | by_text)[text]


def _parse_flag(field: OptionField, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ConfigError(f"{field.key} must be yes or no")
    return _FLAGS[text.lower()]


def _parse_number(field: OptionField, text: str) -> int | float:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{field.key} must be a number")
    return value


def _parse_list(text: str) -> list[Any]:
    if text.startswith("["):
        try:
            return list(tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f'{text!r} must read ["a", "b"], or a, b') from error
    return [part.strip() for part in text.split(",") if part.strip()]


def default_variable(instance: str, field: OptionField) -> str:
    """Return the default name of the environment variable for a secret of an instance."""
    words = _UNSAFE.sub("_", f"{instance}_{_ENDS.sub('', field.key)}".upper()).strip("_")
    return words if is_variable(words) else f"MB_{words}"
