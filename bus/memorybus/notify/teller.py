"""Tells each channel what it has to be told, and notes it, so that the next teller does not repeat.

It is noted when the channel has taken it. If a process is killed between the two, the next teller
tells it again, under the same ids.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from memorybus.clock import Clock
from memorybus.concurrency.backoff import backoff
from memorybus.config.notify import Notify
from memorybus.health.finding import Finding
from memorybus.notify.channels import Channel
from memorybus.notify.incidents import (
    Due,
    Incidents,
    confirm_told,
    drop_other_channels,
    find_due,
    update_incidents,
    worst_state,
)
from memorybus.notify.notice import Sender, build_notice
from memorybus.processes.fed import FedCommand

_log = logging.getLogger("memorybus")

_FIRST: Final = 5.0
_LONGEST: Final = 300.0
"""Seconds until a channel that failed is tried again: after the first failure, and at most."""


class ToldNote(Protocol):
    """What was told, kept where the next teller finds it."""

    def read(self) -> bytes | None:
        """Return it, b"" if nothing was; None if another tells."""
        ...

    def write(self, note: bytes) -> bool:
        """Keep it; return False, and keep nothing, if another tells meanwhile."""
        ...

    def close(self) -> None:
        """Let another tell."""
        ...


class _ChannelQueue:
    """One channel at work: what is being sent, and when to try again.

    Args:
        name: of the channel.
        channel: itself.
        clock: time.
        rng: jitter.
    """

    def __init__(self, name: str, channel: Channel, clock: Clock, rng: random.Random) -> None:
        """Send nothing yet."""
        self.name = name
        self._channel = channel
        self._clock = clock
        self._rng = rng
        self._sending: tuple[Due, FedCommand] | None = None
        self._failures = 0
        self._next = float("-inf")

    @property
    def busy(self) -> bool:
        """Whether something is being sent."""
        return self._sending is not None

    @property
    def can_send(self) -> bool:
        """Whether something may be sent now."""
        return not self.busy and self._clock.monotonic() >= self._next

    def send(self, told: Due, state: str, sender: Sender) -> None:
        """Begin to send."""
        said = build_notice(told, state, sender, self._clock.now_ms())
        try:
            self._sending = told, self._channel.start_sending(said, self._clock)
        except (OSError, ValueError) as error:
            self._note_failure(str(error))

    def take_delivered(self) -> Due | None:
        """Return what the channel has just taken; None if that is nothing. Never waits."""
        if self._sending is None:
            return None
        told, command = self._sending
        failure = command.failure()
        if failure is None:
            return None
        self._sending = None
        if failure:
            self._note_failure(failure)
            return None
        self._failures = 0
        counts = tuple(map(len, (told.began, told.still, told.ended)))
        _log.info("told by %s: %d new, %d still wrong, %d over", self.name, *counts)
        return told

    def has_ended(self) -> bool:
        """Say whether what is being sent has arrived, or failed; end it if it takes too long."""
        return self._sending is not None and self._sending[1].failure() is not None

    def drop(self) -> None:
        """End what is being sent."""
        if self._sending is not None:
            self._sending[1].kill()
            self._sending = None

    def _note_failure(self, why: str) -> None:
        wait = backoff(self._failures, self._rng, first=_FIRST, cap=_LONGEST)
        self._failures += 1
        self._next = self._clock.monotonic() + wait
        why = self._channel.describe_failure(why)
        _log.warning("nobody is told by %s: %s; the next try is in %.0f s", self.name, why, wait)


class Teller:
    """Tells of the findings of one kind, by all channels. Belongs to one thread.

    Args:
        rules: what is told, and when.
        channels: by which.
        sender: who tells.
        note: what was told.
        clock: time.
        rng: jitter.
    """

    def __init__(
        self,
        rules: Notify,
        channels: Mapping[str, Channel],
        sender: Sender,
        note: ToldNote,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """Tell nothing yet."""
        self._rules = rules
        self._sender = sender
        self._note = note
        self._clock = clock
        self._lines = [_ChannelQueue(name, one, clock, rng) for name, one in channels.items()]

    @property
    def busy(self) -> bool:
        """Whether something is being sent."""
        return any(line.busy for line in self._lines)

    def look(self, findings: Callable[[], Sequence[Finding]]) -> None:
        """Tell what has to be told, if that is our task; what `findings` raises is raised.

        Args:
            findings: what is wrong now; asked only if it is our task.
        """
        note = self._note.read()
        if note is None:
            self._drop()
            return
        found = findings()  # before anything is taken note of that could be lost if this fails
        known = drop_other_channels(_read(note), [line.name for line in self._lines])
        for line in self._lines:
            if (told := line.take_delivered()) is not None:
                known = confirm_told(known, line.name, told, self._clock.now_ms())
        known = update_incidents(known, found, self._rules, self._clock.now_ms())
        text = msgspec.json.encode(known)
        # Noted before anything is sent: who repeats it after us uses the same ids.
        if text == note or self._note.write(text):
            self._send(known)

    def has_ended(self) -> bool:
        """Say whether anything that was being sent has ended; end what takes too long."""
        ended = [line.has_ended() for line in self._lines]
        return any(ended)

    def close(self, patience: float) -> None:
        """Note what is taken within so many seconds, drop the rest, and let another tell."""
        until = self._clock.monotonic() + patience
        while self.busy and self._clock.monotonic() < until:
            self._finish()
            self._clock.sleep(0.05)
        self._drop()
        self._note.close()

    def _finish(self) -> None:
        """Note what was taken since the last look."""
        taken = [
            (line.name, told) for line in self._lines if (told := line.take_delivered()) is not None
        ]
        note = self._note.read() if taken else None
        if note is None:
            return
        known = _read(note)
        for name, told in taken:
            known = confirm_told(known, name, told, self._clock.now_ms())
        self._note.write(msgspec.json.encode(known))

    def _send(self, known: Incidents) -> None:
        for line in self._lines:
            if line.can_send and (
                told := find_due(known, line.name, self._rules, self._clock.now_ms())
            ):
                line.send(told, worst_state(known), self._sender)

    def _drop(self) -> None:
        for line in self._lines:
            line.drop()


def _read(note: bytes) -> Incidents:
    """Return what was told; nothing if the note is not ours: it is told again then."""
    try:
        return msgspec.json.decode(note, type=Incidents) if note else ()
    except msgspec.MsgspecError:
        return ()
