"""Gets vectors of questions in a thread, waits for them a moment, and remembers them."""

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable

from memorybus.clock import Clock
from memorybus.errors import ProviderError

from memorybus_providers.embedding.embedder import Vector
from memorybus_providers.embedding.pauses import pause_after

MAX_REMEMBERED = 512  # the most questions whose vectors are kept, the latest ones (G10)

MAX_WAITING = 4
"""The most questions that wait for the embedder; further ones are answered by words alone (G10)."""

MAX_QUESTION_CHARS = 2_000  # the most characters of a question that are embedded (G10)

MAX_REST_SECONDS = 30.0
"""The most seconds without a request after failures: somebody waits for an answer."""


class PendingVector:
    """The vector of a question, which may never come."""

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._vector: Vector | None = None

    def settle(self, vector: Vector | None) -> None:
        """Set the vector; None if there will be none."""
        self._vector = vector
        self._settled.set()

    def wait(self, seconds: float) -> Vector | None:
        """Wait at most `seconds` for the vector; return None if it does not come."""
        return self._vector if self._settled.wait(seconds) else None


class QuestionVectors:
    """Asks for vectors of questions, one after another.

    A vector that comes too late for its answer is used the next time that this question is asked.

    Args:
        embed: returns the vector of a text, or raises a `ProviderError`.
    """

    def __init__(self, embed: Callable[[str], Vector], clock: Clock) -> None:
        self._embed = embed
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, PendingVector] = OrderedDict()
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._paused_until = 0.0

    def ask(self, question: str) -> PendingVector:
        """Request the vector of a question in the thread, unless it is known."""
        text = question[:MAX_QUESTION_CHARS]
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
            asked = PendingVector()
            if self._is_busy():
                asked.settle(None)
                return asked
            self._remember(text, asked)
            self._queue.put(text)
            return asked

    def close(self) -> None:
        """End the thread, without waiting for a request that it has sent."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def _is_busy(self) -> bool:
        return self._queue.qsize() >= MAX_WAITING or self._clock.monotonic() < self._paused_until

    def _remember(self, text: str, asked: PendingVector) -> None:
        self._known[text] = asked
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="memorybus-questions", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        while (text := self._queue.get()) is not None:
            vector = self._try_to_embed(text)
            with self._lock:
                asked = self._known.get(text) if vector is not None else self._known.pop(text, None)
            if asked is not None:
                asked.settle(vector)

    def _try_to_embed(self, text: str) -> Vector | None:
        try:
            vector = self._embed(text)
        except Exception as error:  # after any error the question is answered by words
            self._rest(known=isinstance(error, ProviderError))
            return None
        self._failures = 0
        return vector

    def _rest(self, *, known: bool) -> None:
        self._failures += 1
        seconds = min(MAX_REST_SECONDS, pause_after(self._failures))
        self._paused_until = self._clock.monotonic() + (seconds if known else MAX_REST_SECONDS)
