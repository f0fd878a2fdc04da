"""Where a lane begins in the history that is there now."""

import logging

from memorybus.history.history import History
from memorybus.log.stream import START
from memorybus.redis.scripts import Acquired

from memorybus_workers.lanes.window import Begin

_log = logging.getLogger("memorybus")

STEP_BACK = 5_000
"""A store's checkpoint so far above Redis's is not followed: its ledger knows what comes again."""


class Beginning:
    """Finds the place in the history for what a lane's owners left.

    Redis may have come back without its last second: without events, without what was committed
    and put aside then, or without one of these. What is read again is known to the ledger, or
    marked in the log as come again, or in doubt (G4). What Redis says is of one moment: a done-set
    that came back names entries of the log that came back with it. For no owner from before a
    restart commits after it (`commit.lua`), and who renumbers a log drops it (`renumber.lua`).
    """

    def __init__(self, history: History, known: Acquired, partition: int, provider: str) -> None:
        """Look at one lane.

        Args:
            history: archive and log.
            known: what Redis knows of the lane.
            partition: the lane's.
            provider: whose lane it is, for people.
        """
        self._history = history
        self._known = known
        self._partition = partition
        self._provider = provider

    def found(self, begin: Begin) -> Begin:
        """Return a place of the history, at or before what the provider or Redis says.

        Raises:
            LogUnavailable: Redis is away.
            ArchiveError: the archive is needed, and cannot be read.
        """
        known = self._known
        if 0 < begin.n - known.n <= STEP_BACK:
            begin = Begin(known.entry, known.n)  # dead letters may be lost up to there
        if begin.entry == START or self._is_there(begin):
            return begin  # at the beginning, or behind what is missing there
        found = self._surviving(begin)
        _log.warning(
            "%s, partition %d: the log does not have the checkpoint %d: it lost its tail, or was "
            "trimmed, or the store served another log; going on behind %d",
            self._provider,
            self._partition,
            begin.n,
            found.n,
        )
        return found

    def _is_there(self, begin: Begin) -> bool:
        """Say whether the history has a checkpoint's entry, and goes on behind it.

        What only the archive has may lie behind the end of a log that lost more than it should, and
        gives these numbers again: what the log gives is what counts.
        """
        if self._history.log.has(self._partition, begin.entry):
            return True
        sealed = self._history.has(self._partition, begin.entry)
        return sealed and not self._is_given_again(begin)

    def _is_given_again(self, begin: Begin) -> bool:
        """Say whether the log goes on with numbers up to the checkpoint's behind its entry."""
        following = self._history.following(self._partition, begin.entry)
        return following is not None and following.n <= begin.n

    def _surviving(self, begin: Begin) -> Begin:
        """Return the last place before a checkpoint that the history still has."""
        known = self._known
        before = self._history.before(self._partition, begin.entry)
        if before is not None and before.n < begin.n:
            return Begin(before.entry, before.n)
        if not self._is_given_again(begin):
            return begin  # trimmed: what it stood for is done
        return Begin(START, 0) if begin.n <= known.n else Begin(known.entry, known.n)
