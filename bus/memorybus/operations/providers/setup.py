"""``memorybus provider setup``: instances put into the settings once they are seen to work.

The dialogue is the surface's. Here is what it decides upon: what there is, what would be written,
whether that works, and the writing, of which nothing is done by halves.
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
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError, MissingProvider
from memorybus.operations.providers import config_file, lifecycle
from memorybus.operations.providers.config_file import Edit
from memorybus.operations.providers.limits import with_limits
from memorybus.processes.commands import describe_instance, list_kinds
from memorybus.registry.description import KindOffer


class Target(msgspec.Struct, frozen=True):
    """An instance that somebody wants to set up.

    Attributes:
        name: the instance.
        kind: the provider behind it.
    """

    name: str
    kind: str


class Wish(msgspec.Struct, frozen=True):
    """What was answered for an instance.

    Attributes:
        target: the instance.
        options: what is to stand in its table; others stay as they are.
        secrets: values by their environment variables, for the secrets file alone.
    """

    target: Target
    options: dict[str, Any] = {}
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        """Name the secrets without their values."""
        return f"Wish({self.target}, options: {sorted(self.options)}, {sorted(self.secrets)})"


class Draft(msgspec.Struct, frozen=True):
    """What would be written.

    Attributes:
        target: the instance.
        is_new: whether the settings do not name it yet.
        edit: of memorybus.toml.
        secrets: of the secrets file.
    """

    target: Target
    is_new: bool
    edit: Edit
    secrets: Edit

    def __repr__(self) -> str:
        """Show no text of a secrets file."""
        return f"Draft({self.target}, {self.edit.path}, {self.secrets.path})"

    @property
    def changes(self) -> bool:
        """Whether anything would be written."""
        return any(one.before != one.after for one in (self.edit, self.secrets))


def targets(settings: Settings, words: Sequence[str]) -> list[Target]:
    """Return what words mean: an instance there is, ``KIND``, or ``NAME=KIND``.

    Raises:
        ConfigError: a name that no instance may have, or one twice.
    """
    found = [_target(settings, word) for word in words]
    names = [one.name for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"{', '.join(sorted(twice))} is named twice; use NAME=KIND")
    return found


def _target(settings: Settings, word: str) -> Target:
    name, equals, kind = word.partition("=")
    if equals:
        return Target(check_name(name), kind)
    if word in settings.providers or word in settings.provider:
        return Target(word, settings.provider_kind(word))
    return Target(check_name(word.rpartition(":")[2].rpartition("/")[2].lower()), word)


def offers(settings: Settings, wanted: Sequence[Target]) -> dict[str, KindOffer]:
    """Return what the kinds of these instances promise, by kind, and the limits of their calls.

    Raises:
        MissingProvider: one of them is not there, or what it needs is not installed.
    """
    kinds = [one.kind for one in wanted]
    found = {one.kind: with_limits(one) for one in list_kinds(settings, kinds)}
    for offer in found.values():
        if offer.missing:
            raise MissingProvider(offer.missing)
    return found


def draft(settings: Settings, wish: Wish) -> Draft:
    """Return what would be written; nothing is.

    Raises:
        ConfigError: a file cannot be read, or the instance is of another kind.
    """
    target = wish.target
    edit = config_file.setting_up(settings, target.name, target.kind, wish.options)
    secrets = config_file.keeping_secrets(config_file.secrets_path(settings), wish.secrets)
    return Draft(target, target.name not in settings.providers, edit, secrets)


@contextmanager
def rehearsed(what: Draft, given: Mapping[str, Any]) -> Iterator[Settings]:
    """Give the settings as they would be, with a private copy of the secrets, for a trial.

    Raises:
        ConfigError: they would not be valid.
    """
    with TemporaryDirectory(prefix="memorybus-") as scratch:
        secrets = Path(scratch) / SECRETS_NAME
        private.write(secrets, what.secrets.after.encode())
        yield config_file.settings_of(what.edit, **{**given, "secrets_file": str(secrets)})


def check(then: Settings, what: Draft) -> None:
    """Make sure that the instance could be made.

    Raises:
        ConfigError, MissingProvider: it cannot, or the environment says which providers there are.
    """
    if what.target.name not in then.providers:
        raise ConfigError(
            f"MEMORYBUS_PROVIDERS names the providers, so that those of {what.edit.path} do not "
            f"count; add {what.target.name} there"
        )
    describe_instance(then, what.target.name)


def keep(settings: Settings, what: Draft, by: str, given: Mapping[str, Any]) -> None:
    """Write the secrets, then the settings, each whole.

    Raises:
        ConfigError: a file was changed meanwhile, or the name is a copy's.
        OSError: it cannot be written.
    """
    if what.secrets.before != what.secrets.after:
        config_file.write(what.secrets)
    if what.is_new:
        named = {**given, "secrets_file": what.secrets.path}
        added = lifecycle.addition(
            settings, what.edit, what.target.name, lifecycle.BEGINNING, named
        )
        lifecycle.add(settings, what.edit, added, by)
    elif what.edit.before != what.edit.after:
        config_file.write(what.edit)
