"""The table ``[notify]`` of the settings, which says how people are notified of findings."""

import math
from typing import Annotated, Final, Literal

import msgspec

from memorybus.errors import ConfigError

_SCHEMES: Final = ("http://", "https://")
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Notify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people are notified that something is wrong. By default nobody is. Times are seconds.

    Attributes:
        url: a webhook; its address is masked like a secret, as it often holds one.
        url_env: the environment variable that holds the webhook's address instead.
        token_env: the environment variable with the token that the webhook wants (``Bearer``).
        command: a program and its arguments; it is run without a shell, and gets JSON on its
            standard input.
        severity: the lowest severity of which people are notified.
        after: how long a finding must exist before people are notified of it, and how long it must
            be gone before they are notified of that.
        again: how long until they are notified again of a finding that still exists; 0 for never.
        timeout: how long the webhook, or the command, may take.
    """

    url: str = ""
    url_env: str = ""
    token_env: str = ""
    command: tuple[str, ...] = ()
    severity: Literal["critical", "warning"] = "warning"
    after: _Seconds = 60.0
    again: _Seconds = 14_400.0
    timeout: _Seconds = 10.0

    def __post_init__(self) -> None:
        """Refuse values that are impossible or contradict each other."""
        if self.url and self.url_env:
            raise ConfigError("notify: name url or url_env, not both")
        if self.url:
            check_webhook(self.url)
        for name in ("after", "again", "timeout"):
            if not math.isfinite(getattr(self, name)):
                raise ConfigError(f"notify: {name} must be a number of seconds")
        if not self.timeout:
            raise ConfigError("notify: timeout must be more than 0 s")
        if self.command and not self.command[0]:
            raise ConfigError("notify: command must begin with a program")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that hold secrets of this table."""
        return tuple(filter(None, (self.url_env, self.token_env)))

    @property
    def channels(self) -> tuple[str, ...]:
        """The ways by which people are notified."""
        webhook = ("webhook",) if self.url or self.url_env else ()
        return (*webhook, *(("command",) if self.command else ()))


NOTIFY_FIELDS: Final = Notify.__struct_fields__


def check_webhook(url: str) -> None:
    """Refuse a text that is not a webhook's address; it is not quoted, since it may be a secret.

    Raises:
        ConfigError: it does not begin with ``http://`` or ``https://``.
    """
    if not url.lower().startswith(_SCHEMES):
        raise ConfigError("notify: the webhook's address must begin with https:// or http://")
