"""Records what prompts were given, after their turns, so that no prompt waits for it."""

import logging
import os
from collections import defaultdict, deque
from functools import partial
from itertools import takewhile
from random import Random
from weakref import WeakSet

from memorybus.config.settings import Settings
from memorybus.errors import MemoryBusError
from memorybus.ids import derived_id
from memorybus.outbox.publisher import Publisher
from memorybus.recall.shown import ShownPrompt, build_record
from memorybus.redis.keys import session_key

_log = logging.getLogger("memorybus")
MAX_PENDING_SESSIONS, MAX_PENDING_PROMPTS = 256, 8
"""Of how many sessions a process keeps prompts until their turns complete, and how many of each."""


class PromptRecorder:
    """Keeps prompts until their turns complete, then publishes one `Recalled` for each."""

    def __init__(self, settings: Settings, publisher: Publisher, rng: Random) -> None:
        # The prompts by order key; None for one that asked nothing. Sessions add to it
        # themselves, because a call less matters there.
        self.pending: defaultdict[str, deque[ShownPrompt | None]] = defaultdict(
            partial(deque, maxlen=MAX_PENDING_PROMPTS)
        )
        self.rng = rng  # decides which prompts are recorded
        self.share = settings.recorded_prompts
        self._publisher = publisher
        _recorders.add(self)

    def record(self, key: str, turn: str = "", session: str = "") -> None:
        own = self.prompt_of(key, session)
        for prompt in filter(None, self.pending.pop(key, ())):
            if prompt.block and self.rng.random() < self.share:
                self._publish(prompt, turn if prompt is own else "")

    def prompt_of(self, key: str, session: str) -> ShownPrompt | None:
        """Return the pending prompt of the turn that has just completed; None if none is known.

        Args:
            session: the id of its session, since branches have one key; a compression may have
                given it a new one.
        """
        newest = list(takewhile(bool, reversed(tuple(self.pending.get(key, ())))))
        own = [prompt for prompt in newest if prompt and prompt.session.id == session] or newest
        return own[0] if own else None

    def record_oldest(self) -> None:
        """Publish the prompts that have been pending longest, because there are too many (G10)."""
        for key in [*self.pending][:1]:  # another thread may change it meanwhile
            self.record(key)

    def record_all(self) -> None:
        for key in [*self.pending]:
            self.record(key)

    def _publish(self, prompt: ShownPrompt, turn: str) -> None:
        """Publish one record; if that fails, the agent goes on without it (G9)."""
        try:
            self._publisher.publish(
                build_record(prompt, turn),
                key=session_key(prompt.scope, prompt.session.root),
                scope=prompt.scope,
                session=prompt.session,
                event_id=derived_id("recalled", turn) if turn else "",
            )
        except MemoryBusError as error:
            _log.debug("a prompt is not recorded: %s", error)


_recorders: WeakSet[PromptRecorder] = WeakSet()


def _leave_to_parent() -> None:
    """Drop the prompts of before a fork in the child, because the parent records them."""
    for recorder in _recorders:
        recorder.pending.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
