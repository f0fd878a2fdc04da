"""Makes missing vectors in a thread next to the lanes, with its own connection.

It calls the embedder outside of any transaction and writes each batch in a short one, so that a
slow or dead embedder delays nothing else. Of several processes that use one store, only one fills
it; the store decides which.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import msgspec
import numpy as np
from memorybus.clock import Clock
from memorybus.errors import Permanent, ProviderError, Unavailable

from memorybus_providers.embedding.baseline import UNRELATED, baseline_of
from memorybus_providers.embedding.embedder import Embedder, Vector, at_length_one, embed_text
from memorybus_providers.embedding.pauses import pause_after
from memorybus_providers.embedding.vectors import Model, UnembeddedFact, VectorStore

_log = logging.getLogger("memorybus")

MAX_FACT_CHARS = 2_000  # the most characters of a fact that are embedded (G10)

IDLE_SECONDS = 5.0  # seconds between two searches for facts that another process has stored

THREAD = "memorybus-meaning"  # the name of the thread of each backfill

OpenStore = Callable[[], AbstractContextManager[VectorStore | None]]
"""Opens the store for one backfill; None while another process fills it."""

COUNT_SECONDS = 1.0  # seconds between two counts of the missing vectors

_PROBE_TEXT = "a word"
_MAX_QUOTED_CHARS = 300


class BackfillSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a backfill."""

    open_store: OpenStore  # opens the vectors that are filled in
    clock: Clock
    embedder: Embedder  # makes the vectors
    batch: int = 32  # how many facts one request has
    rebuild: str = "memorybus rebuild"  # the command with which an operator renews all vectors


class Backfill:
    """The thread. `stop` ends it, and it writes nothing after that."""

    def __init__(self, filling: BackfillSettings) -> None:
        self._filling = filling
        self._lacking = ""
        self._error = ""
        self._embedder = filling.embedder
        self._failures = 0
        self._counted_at = -COUNT_SECONDS
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)

    @property
    def report(self) -> str:
        """A line for operators about missing vectors and errors; "" if there are neither."""
        return "; ".join(filter(None, (self._lacking, self._error)))

    def start(self) -> None:
        """Start the thread, unless it was started before."""
        if self._thread.ident is None:
            self._thread.start()

    def wake(self) -> None:
        """Let the thread look for new facts now."""
        self._woken.set()

    def stop(self, timeout: float = 1.0) -> None:
        """End the thread; wait at most `timeout` seconds for a request that it has sent."""
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with self._filling.open_store() as tables:
                    if tables is None:
                        self._stopped.wait(IDLE_SECONDS)
                    else:
                        self._fill(tables)
            except (ProviderError, OSError) as error:
                self._stopped.wait(self._note_failure(str(error)))
            except Exception as error:  # no error of an embedder may end the thread
                _log.exception("search by meaning: filling in failed")
                self._stopped.wait(self._note_failure(repr(error)))

    def _fill(self, tables: VectorStore) -> None:
        """Fill until `stop` is called, or until something fails."""
        tables.prepare()
        while not self._stopped.is_set():
            if not self._fill_batch(tables):
                self._woken.wait(IDLE_SECONDS)
                self._woken.clear()

    def _fill_batch(self, tables: VectorStore) -> bool:
        """Make the vectors of one batch of facts; say whether there was one."""
        model, wanted = tables.model(), self._embedder.model
        if model is not None and model.name != wanted:
            self._lacking = describe_model_change(model.name, wanted, self._filling.rebuild)
            return False
        batch = tables.missing(self._filling.batch)
        self._count_missing(tables, now=not batch)
        if batch:
            vectors = self._vectors(model or self._learn_model(tables), batch)
            if self._stopped.is_set():
                return False
            tables.keep(batch, vectors)
        self._failures = 0
        self._error = ""
        return bool(batch)

    def _learn_model(self, tables: VectorStore) -> Model:
        """Get vectors of unrelated texts, and record the model with what they show of it."""
        found = at_length_one(self._embedder.embed(UNRELATED))
        learnt = Model(self._embedder.model, found.shape[1], baseline_of(found))
        tables.name_model(learnt)
        return learnt

    def _vectors(self, model: Model, batch: Sequence[UnembeddedFact]) -> list[Vector]:
        texts = [one.content[:MAX_FACT_CHARS] for one in batch]
        try:
            found = list(at_length_one(self._embedder.embed(texts)))
        except Permanent:
            self._check_alive()
            found = [self._embed_alone(text) for text in texts]
        for vector in found:
            if vector.size not in (0, model.size):
                raise Unavailable(
                    f"the embedder gives {vector.size} numbers, and the vectors of {model.name} "
                    f"have {model.size}: another model? Then: {self._filling.rebuild}"
                )
        return found

    def _check_alive(self) -> None:
        """Find out whether the embedder refuses one text or everything.

        Raises:
            Unavailable: it refuses a plain word.
        """
        try:
            self._embedder.embed([_PROBE_TEXT])
        except Permanent as error:
            raise Unavailable(str(error)) from error

    def _embed_alone(self, text: str) -> Vector:
        """Return the vector of one text; an empty one if the embedder refuses it."""
        try:
            return embed_text(self._embedder, text)
        except Permanent:
            return np.zeros(0, dtype=np.float32)

    def _count_missing(self, tables: VectorStore, *, now: bool) -> None:
        """Count the missing vectors, but only every `COUNT_SECONDS` while some are missing, since
        counting takes time.
        """
        asked = self._filling.clock.monotonic()
        if not now and self._lacking and asked < self._counted_at + COUNT_SECONDS:
            return
        self._counted_at = asked
        missing, kept = tables.counts()
        self._lacking = describe_missing(missing, missing + kept) if missing else ""

    def _note_failure(self, why: str) -> float:
        """Remember a failure; return the seconds to wait."""
        self._error = f"search by meaning fails: {' '.join(why.split())[:_MAX_QUOTED_CHARS]}"
        self._failures += 1
        return pause_after(self._failures)


def describe_missing(missing: int, facts: int) -> str:
    """Return how many facts have no vector yet, as people read it."""
    return f"{missing:,} of {facts:,} facts have no vector yet"


def describe_model_change(stored: str, wanted: str, rebuild: str) -> str:
    """Return what to do about vectors of another model, as people read it."""
    return (
        f"its vectors are of the model {stored}, but the options name {wanted}: words alone answer "
        f"until {rebuild}"
    )
