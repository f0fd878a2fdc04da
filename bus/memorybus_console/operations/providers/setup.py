"""``memorybus provider setup``: writes instances into the settings after trying them.

The dialogue belongs to the surface. This module offers what the dialogue needs: the options of a
kind, the files as they would be, settings for a trial, and a function that writes each whole file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from memorybus import private
from memorybus.config.path_names import check_name
from memorybus.config.secrets_file import SECRETS_NAME
from memorybus.config.settings import CallLimits, Settings
from memorybus.errors import ConfigError, MissingProvider
from memorybus.processes.commands import describe_instance, fetch_for_instance, list_kinds
from memorybus.processes.reports import KindOffer, OptionField

from memorybus_console.operations.providers import config_file, lifecycle
from memorybus_console.operations.providers.config_file import FileEdit
from memorybus_console.operations.settings import documented


class Target(msgspec.Struct, frozen=True):
    """An instance that somebody wants to set up."""

    name: str
    kind: str


class SetupAnswers(msgspec.Struct, frozen=True):
    """The answers for an instance.

    Attributes:
        options: the options to write into its table; others stay as they are.
        secrets: the values of environment variables, which go only into the secrets file.
    """

    target: Target
    options: dict[str, Any] = {}
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        """Name the secrets without their values."""
        return (
            f"SetupAnswers({self.target}, options: {sorted(self.options)}, {sorted(self.secrets)})"
        )


class SetupDraft(msgspec.Struct, frozen=True):
    """The edits of both files for an instance, not written yet.

    Attributes:
        since: where in the history a new one begins: ``beginning``, ``now``, or a moment.
        edit: the edit of memorybus.toml.
    """

    target: Target
    is_new: bool
    since: str
    edit: FileEdit
    secrets: FileEdit

    def __repr__(self) -> str:
        """Show no text of a secrets file."""
        return f"SetupDraft({self.target}, {self.edit.path}, {self.secrets.path})"

    @property
    def changes(self) -> bool:
        """Whether anything would be written."""
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
    edit = config_file.edit_to_set_up(settings, target.name, target.kind, answers.options)
    secrets = config_file.edit_secrets(config_file.secrets_path(settings), answers.secrets)
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
        yield config_file.settings_after(what.edit, **{**given, "secrets_file": str(secrets)})


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
            config_file.write_edit(edit)
