"""The channels to people: each is a command that gets a notice as JSON on its standard input."""

import socket
from collections.abc import Mapping, Sequence

import msgspec

from memorybus.clock import Clock
from memorybus.config.settings import Settings, to_environ
from memorybus.notify.notice import Notice, Sender
from memorybus.notify.webhook import read_target
from memorybus.processes.commands import module_command
from memorybus.processes.fed import FedCommand
from memorybus.text.redact import one_line

_LONGER = 2.0
"""Seconds that the webhook's process gets beyond its own time-out: its start takes some."""


class Channel(msgspec.Struct, frozen=True):
    """One channel to people.

    Attributes:
        command: the command to run.
        environ: its environment; the webhook's address stands only there.
        timeout: seconds that it may take.
        secrets: texts that its error messages may not show.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    timeout: float
    secrets: frozenset[str]

    def start_sending(self, notice: Notice, clock: Clock) -> FedCommand:
        """Begin to send a notice.

        Raises:
            OSError: the command cannot be started.
            ValueError: a word of it holds what no command line can.
        """
        text = msgspec.json.encode(notice)
        return FedCommand(self.command, self.environ, text, self.timeout, clock)

    def describe_failure(self, failure: str) -> str:
        """Return why a notice did not get through, in one line without secrets."""
        return one_line(failure, self.secrets)


def channels_of(settings: Settings) -> dict[str, Channel]:
    """Return the configured channels by name; none if no channel is configured.

    Raises:
        ConfigError: a variable that is named is not set, or holds no address.
    """
    rules = settings.notify
    found: dict[str, Channel] = {}
    environ, secrets = to_environ(settings), settings.secrets
    if "webhook" in rules.channels:
        read_target(rules)
        post = module_command("memorybus.notify.webhook")
        found["webhook"] = Channel(post, environ, rules.timeout + _LONGER, secrets)
    if "command" in rules.channels:
        found["command"] = Channel(rules.command, environ, rules.timeout, secrets)
    return found


def sender_of(settings: Settings) -> Sender:
    """Return the sender of notices: this host."""
    return Sender(settings.namespace, socket.gethostname(), settings.secrets)
