"""The embedder and the backfill of one open instance, for any store of vectors."""

from collections.abc import Callable

from memorybus.errors import ProviderError

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.backfill import Backfill, BackfillSettings, OpenStore
from memorybus_providers.embedding.choice import make_embedder
from memorybus_providers.embedding.embedder import Vector, embed_text
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.embedding.questions import QuestionVectors
from memorybus_providers.embedding.vectors import Model


class FilledMeaning:
    """What an instance with an embedder has in addition to its store; a store adds its search."""

    def __init__(
        self, open_store: OpenStore, config: ProviderConfig, options: MeaningOptions
    ) -> None:
        """Choose the embedder; nothing is asked and no thread is started.

        Raises:
            ImportError: a library that the embedder needs is not installed.
            Unavailable: the environment variable with its key does not exist.
        """
        self._options = options
        self._embedder = make_embedder(options, config)
        self._questions = QuestionVectors(
            lambda text: embed_text(self._embedder, text, asked=True), config.clock
        )
        self._backfill = Backfill(
            BackfillSettings(
                open_store=open_store,
                clock=config.clock,
                embedder=self._embedder,
                batch=options.embedder_batch,
                rebuild=f"memorybus rebuild {config.stands_for or config.name}",
            )
        )

    @property
    def report(self) -> str:
        """A line for operators about the vectors; "" if there is nothing to report."""
        return self._backfill.report

    def fill(self) -> None:
        """Start the thread that makes missing vectors; if it runs already, wake it.

        Only an instance with lanes calls this: one that only answers writes nothing.
        """
        self._backfill.start()
        self._backfill.wake()

    def close(self) -> None:
        """End the threads of the backfill and of questions, and release the embedder."""
        self._backfill.stop()
        self._questions.close()
        self._embedder.close()

    def ask(self, text: str, stored: Model | None) -> Callable[[], Vector | None]:
        """Request the vector of a question; the returned function waits for it a moment.

        It returns None if the vector does not come in time, or if the stored vectors are of another
        model, which the backfill reports.
        """
        try:
            if stored is None or stored.name != self._embedder.model:
                return lambda: None
        except ProviderError:
            return lambda: None
        asked, size = self._questions.ask(text), stored.size

        def wait() -> Vector | None:
            vector = asked.wait(self._options.embedder_wait)
            return vector if vector is not None and vector.size == size else None

        return wait
