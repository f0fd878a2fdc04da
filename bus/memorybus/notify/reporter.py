"""Sends each channel its notices, and notes them, so that the next reporter does not repeat them.

A notice is noted when the channel has taken it. If a process is killed between the two, the next
reporter sends the same alarms again, under the same ids.
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
from memorybus.msgspec_types import prepared
from memorybus.notify.channels import Channel
from memorybus.notify.incidents import (
    DueReport,
    Incidents,
    drop_other_channels,
    find_due,
    note_reported,
    update_incidents,
    worst_state,
)
from memorybus.notify.notice import NoticeSender, build_notice
from memorybus.processes.fed import FedCommand

_log = logging.getLogger("memorybus")

_FIRST_RETRY_SECONDS: Final = 5.0
_MAX_RETRY_SECONDS: Final = 300.0
"""Seconds until a channel that failed is tried again: after the first failure, and at most."""


class IncidentNote(Protocol):
    """The incidents and their reports, as bytes, in a place where the next reporter finds them."""

    def read(self) -> bytes | None:
        """Take the task of reporting and return the note.

        Returns:
            b"" if there is no note yet; None if another reporter has the task.
        """
        ...

    def write(self, note: bytes) -> bool:
        """Replace the note; return False, and change nothing, if another reporter has the task."""
        ...

    def close(self) -> None:
        """Give up the task, so that another reporter can take it."""
        ...


class _ChannelQueue:
    """Sends the notices of one channel, one at a time, and tries again after failures.

    Args:
        name: the channel's name.
        channel: the channel.
        clock: time.
        rng: makes the jitter of pauses.
    """

    def __init__(self, name: str, channel: Channel, clock: Clock, rng: random.Random) -> None:
        """Send nothing yet."""
        self.name = name
        self._channel = channel
        self._clock = clock
        self._rng = rng
        self._sending: tuple[DueReport, FedCommand] | None = None
        self._failures = 0
        self._next = float("-inf")

    @property
    def busy(self) -> bool:
        """Whether a notice is being sent."""
        return self._sending is not None

    @property
    def can_send(self) -> bool:
        """Whether a notice may be sent now."""
        return not self.busy and self._clock.monotonic() >= self._next

    def send(self, due: DueReport, state: str, sender: NoticeSender) -> None:
        """Begin to send a notice."""
        notice = build_notice(due, state, sender, self._clock.now_ms())
        try:
            self._sending = due, self._channel.start_sending(notice, self._clock)
        except (OSError, ValueError) as error:
            self._note_failure(str(error))

    def take_delivered(self) -> DueReport | None:
        """Return what the channel has taken since the last call, or None. Never waits."""
        if self._sending is None:
            return None
        due, command = self._sending
        end = command.poll()
        if end is None:
            return None
        self._sending = None
        if end.failure:
            self._note_failure(end.failure)
            return None
        self._failures = 0
        counts = tuple(map(len, (due.began, due.still, due.ended)))
        _log.info("notified by %s: %d new, %d still wrong, %d over", self.name, *counts)
        return due

    def has_ended(self) -> bool:
        """Say whether the notice has arrived or failed; end its command if that takes too long."""
        return self._sending is not None and self._sending[1].poll() is not None

    def drop(self) -> None:
        """End the command that is sending."""
        if self._sending is not None:
            self._sending[1].kill()
            self._sending = None

    def _note_failure(self, why: str) -> None:
        wait = backoff(
            self._failures, self._rng, first=_FIRST_RETRY_SECONDS, cap=_MAX_RETRY_SECONDS
        )
        self._failures += 1
        self._next = self._clock.monotonic() + wait
        why = self._channel.describe_failure(why)
        _log.warning("a notice by %s failed: %s; the next try is in %.0f s", self.name, why, wait)


class Reporter:
    """Reports the findings about one subject (the bus, or this host) to all channels.

    Belongs to one thread.

    Args:
        rules: what to report, and when.
        channels: the channels by name.
        sender: the sender.
        note: the note of incidents and reports.
        clock: time.
        rng: makes the jitter of pauses.
    """

    def __init__(
        self,
        rules: Notify,
        channels: Mapping[str, Channel],
        sender: NoticeSender,
        note: IncidentNote,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """Send nothing yet."""
        self._rules = rules
        self._sender = sender
        self._note = note
        self._clock = clock
        self._queues = [_ChannelQueue(name, one, clock, rng) for name, one in channels.items()]

    @property
    def busy(self) -> bool:
        """Whether a notice is being sent."""
        return any(queue.busy for queue in self._queues)

    def report(self, findings: Callable[[], Sequence[Finding]]) -> None:
        """Report what is due, if this reporter has the task; raise what `findings` raises.

        Args:
            findings: returns what is wrong now; called only if this reporter has the task.
        """
        note = self._note.read()
        if note is None:
            self._drop()
            return
        found = findings()  # first: if it fails, every delivery is still noted later
        known = drop_other_channels(_read(note), [queue.name for queue in self._queues])
        for queue in self._queues:
            if (delivered := queue.take_delivered()) is not None:
                known = note_reported(known, queue.name, delivered, self._clock.now_ms())
        known = update_incidents(known, found, self._rules, self._clock.now_ms())
        text = msgspec.json.encode(known)
        # Note incidents before sending them: a reporter that repeats them then uses the same ids.
        if text == note or self._note.write(text):
            self._send(known)

    def has_ended(self) -> bool:
        """Say whether the sending of any notice has ended; end commands that take too long."""
        ended = [queue.has_ended() for queue in self._queues]
        return any(ended)

    def close(self, patience: float) -> None:
        """Note what channels take within `patience` seconds, drop the rest, give up the task."""
        until = self._clock.monotonic() + patience
        while self.busy and self._clock.monotonic() < until:
            self._finish()
            self._clock.sleep(0.05)
        self._drop()
        self._note.close()

    def _finish(self) -> None:
        """Note what channels have taken since the last look."""
        taken = [
            (queue.name, due)
            for queue in self._queues
            if (due := queue.take_delivered()) is not None
        ]
        note = self._note.read() if taken else None
        if note is None:
            return
        known = _read(note)
        for name, delivered in taken:
            known = note_reported(known, name, delivered, self._clock.now_ms())
        self._note.write(msgspec.json.encode(known))

    def _send(self, known: Incidents) -> None:
        for queue in self._queues:
            if queue.can_send and (
                due := find_due(known, queue.name, self._rules, self._clock.now_ms())
            ):
                queue.send(due, worst_state(known), self._sender)

    def _drop(self) -> None:
        for queue in self._queues:
            queue.drop()


def _read(note: bytes) -> Incidents:
    """Return the incidents in a note; none if it is not ours, so that all are reported again."""
    try:
        return msgspec.json.decode(note, type=prepared(Incidents)) if note else ()
    except msgspec.MsgspecError:
        return ()
