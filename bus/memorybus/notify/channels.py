"""The channels to people: each is a command that reads a notice as JSON from standard input."""

import socket
from collections.abc import Mapping, Sequence

import msgspec

from memorybus.clock import Clock
from memorybus.config.settings import Settings, to_environ
from memorybus.notify.notice import Notice, NoticeSender
from memorybus.notify.webhook import read_target
from memorybus.processes.commands import module_command
from memorybus.processes.fed import FedCommand
from memorybus.text.redact import one_line

_START_SECONDS = 2.0
"""Seconds by which the webhook's process may exceed its own time-out, because it has to start."""


class Channel(msgspec.Struct, frozen=True):
    """One channel to people.

    Attributes:
        command: the command to run.
        environ: its environment, the only place that holds the webhook's address.
        timeout: how long it may run, seconds.
        secrets: texts that its error messages must not show.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    timeout: float
    secrets: frozenset[str]

    def start_sending(self, notice: Notice, clock: Clock) -> FedCommand:
        """Begin to send a notice.

        Raises:
            OSError: the command cannot be started.
            ValueError: a word of it contains a character that no command line may contain.
        """
        text = msgspec.json.encode(notice)
        return FedCommand(self.command, self.environ, text, self.timeout, clock)

    def describe_failure(self, failure: str) -> str:
        """Return why a notice did not arrive, as one line without secrets."""
        return one_line(failure, self.secrets)


def channels_of(settings: Settings) -> dict[str, Channel]:
    """Return the configured channels by name; there may be none.

    Raises:
        ConfigError: a variable that the settings name is not set, or holds no address.
    """
    rules = settings.notify
    found: dict[str, Channel] = {}
    environ, secrets = to_environ(settings), settings.secrets
    if "webhook" in rules.channels:
        read_target(rules)
        post = module_command("memorybus.notify.webhook")
        found["webhook"] = Channel(post, environ, rules.timeout + _START_SECONDS, secrets)
    if "command" in rules.channels:
        found["command"] = Channel(rules.command, environ, rules.timeout, secrets)
    return found


def sender_of(settings: Settings) -> NoticeSender:
    """Return the sender of notices: this host."""
    return NoticeSender(settings.namespace, socket.gethostname(), settings.secrets)
