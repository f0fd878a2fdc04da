"""The embedder and the filler of one open instance, for any store of vectors."""

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.choice import make_embedder
from memorybus_providers.embedding.filler import Filler, FillerSettings, OpenStore
from memorybus_providers.embedding.options import MeaningOptions


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
        self._embedder = make_embedder(options)
        self._model = options.vectors_known_by(self._embedder.model)
        self._filler = Filler(
            FillerSettings(
                open_store=open_store,
                clock=config.clock,
                embedder=self._embedder,
                model=self._model,
                prefix=options.embedder_text,
                batch=options.embedder_batch,
                rebuild=f"memorybus rebuild {config.stands_for or config.name}",
            )
        )

    @property
    def report(self) -> str:
        """A line for operators about the vectors; "" if there is nothing to report."""
        return self._filler.report

    def fill(self) -> None:
        """Start the thread that makes missing vectors; if it runs already, wake it.

        Only an instance with lanes calls this: one that only answers writes nothing.
        """
        self._filler.start()
        self._filler.wake()

    def close(self) -> None:
        """End the threads of the filler and of searches, and release the embedder."""
        self._filler.stop()
        self._end_searches()
        self._embedder.close()

    def _end_searches(self) -> None:
        """Release what searches use; a store that needs this overrides it."""
