"""Tries the notifications: sends one test notice by each channel of the settings."""

from collections.abc import Iterator

import msgspec

from memorybus.clock import SYSTEM, Clock
from memorybus.config.settings import Settings
from memorybus.errors import ConfigError
from memorybus.notify.channels import channels_of, sender_of
from memorybus.notify.notice import build_test_notice

_NO_CHANNEL = (
    "nobody is told of findings: write `url`, `url_env` or `command` into the table [notify] of "
    "memorybus.toml"
)


class NoticeResult(msgspec.Struct, frozen=True):
    """The result of a test notice.

    Attributes:
        channel: "webhook" or "command".
        ok: whether the channel took it.
        error: why it did not; hostile text. "" if it did.
        seconds: how long that took.
    """

    channel: str
    ok: bool
    error: str
    seconds: float


def send_test_notice(settings: Settings, clock: Clock = SYSTEM) -> Iterator[NoticeResult]:
    """Send a test notice by each channel, one after another; yield each result.

    Raises:
        ConfigError: no channel is configured, or one is configured incompletely.
    """
    channels = channels_of(settings)
    if not channels:
        raise ConfigError(_NO_CHANNEL)
    for name, channel in channels.items():
        begun = clock.monotonic()
        try:
            notice = build_test_notice(sender_of(settings), clock.now_ms())
            failure = channel.start_sending(notice, clock).wait().failure
        except (OSError, ValueError) as error:
            failure = str(error)
        took = round(clock.monotonic() - begun, 3)
        yield NoticeResult(name, not failure, channel.describe_failure(failure), took)
