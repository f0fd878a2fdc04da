"""Finds the place at which a lane continues in the present history."""

import logging

from memorybus.history.history import History
from memorybus.log.stream import START
from memorybus.redis.scripts import OwnedLane

from memorybus_workers.lanes.window import StartPoint

_log = logging.getLogger("memorybus")
STEP_BACK = 5_000
"""If a store's checkpoint is at most so far above that of Redis, the lane continues at that of
Redis: the store's ledger recognises the events that come again."""


class StartFinder:
    """Finds the place in the history that fits the state that a lane's former owners left.

    A Redis that restarted may lack its last second: events, commits, parked events, or all of
    these. Reading an event again is safe: the provider's ledger knows it, or the log marks it as
    sent again, or it is in doubt (G4). The data in Redis are from one moment: the entries that a
    surviving done-set names have survived, too. No owner from before a restart commits after it
    (`commit.lua`), and renumbering a log deletes the done-set (`renumber.lua`).
    """

    def __init__(self, history: History, lane: OwnedLane) -> None:
        self._history = history
        self._lane = lane
        self._partition = lane.partition

    def find(self, point: StartPoint) -> StartPoint:
        """Return a place in the history, at or before the one that the provider or Redis names."""
        lane = self._lane
        if 0 < point.n - lane.n <= STEP_BACK:
            point = StartPoint(lane.entry, lane.n)  # dead letters behind it may be lost
        if point.entry == START or self._has_entry_of(point):
            return point  # START may have a number, if a gap was skipped at the beginning
        surviving = self._last_surviving(point)
        _log.warning(
            "%s, partition %d: the log does not have the checkpoint %d: it lost its tail, or was "
            "trimmed, or the store served another log; continuing behind %d",
            lane.provider,
            self._partition,
            point.n,
            surviving.n,
        )
        return surviving

    def _has_entry_of(self, point: StartPoint) -> bool:
        """Return whether the history has a checkpoint's entry and continues behind it.

        A log that lost its tail gives the same numbers again. Then an entry that only the archive
        has may be beyond the log's end, and the log counts.
        """
        if self._history.log.has_entry(self._partition, point.entry):
            return True
        sealed = self._history.has(self._partition, point.entry)
        return sealed and not self._are_numbers_given_again(point)

    def _are_numbers_given_again(self, point: StartPoint) -> bool:
        """Whether the log's next entry behind the checkpoint has no higher number than it."""
        following = self._history.next_in_log(self._partition, point.entry)
        return following is not None and following.n <= point.n

    def _last_surviving(self, point: StartPoint) -> StartPoint:
        """Return the last place before a checkpoint that the history still has."""
        lane = self._lane
        before = self._history.last_before(self._partition, point.entry)
        if before is not None and before.n < point.n:
            return StartPoint(before.entry, before.n)
        if not self._are_numbers_given_again(point):
            return point  # the log was trimmed: everything up to the checkpoint is done
        return StartPoint(START, 0) if point.n <= lane.n else StartPoint(lane.entry, lane.n)
