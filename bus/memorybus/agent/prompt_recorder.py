"""Records what prompts were given, after their turns, so that no prompt waits for it."""

import logging
from collections import defaultdict, deque
from functools import partial
from random import Random

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
    """Keeps prompts until their turns complete, then publishes one `Recalled` for each.

    Attributes:
        pending: the prompts by order key; None for one that was given nothing. Sessions add to it
            themselves, because a call less matters there.
        rng: decides which prompts are recorded.
    """

    def __init__(self, settings: Settings, publisher: Publisher, rng: Random) -> None:
        self.pending: defaultdict[str, deque[ShownPrompt | None]] = defaultdict(
            partial(deque, maxlen=MAX_PENDING_PROMPTS)
        )
        self.rng = rng
        self.share = settings.recorded_prompts
        self._publisher = publisher

    def record(self, key: str, turn: str = "") -> None:
        """Publish what the pending prompts of an order key were given.

        Args:
            turn: the event of the turn that the last one began; "" if it is not known.
        """
        prompts = self.pending.pop(key, deque())
        for prompt in filter(None, prompts):
            self._publish(prompt, turn if prompt is prompts[-1] else "")

    def record_oldest(self) -> None:
        """Publish the prompts that have been pending longest, because there are too many (G10)."""
        self.record(next(iter(self.pending)))

    def record_all(self) -> None:
        """Publish all prompts, because the process ends."""
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
