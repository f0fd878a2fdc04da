"""The holographic provider: its options, and how an instance is opened."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memorybus_providers.base import Placement, ProviderConfig
from memorybus_providers.embedding.options import MeaningOptions, read_meaning
from memorybus_providers.fact_provider import FactProvider, missing_library
from memorybus_providers.holographic.store import HolographicStore
from memorybus_providers.options import option_rows

if TYPE_CHECKING:  # it imports numpy, which only instances with an embedder need
    from memorybus_providers.holographic.meaning.meaning import SqliteMeaning

FILE_NAME = "holographic.db"


class HolographicProvider(FactProvider):
    """Keeps facts in one SQLite file; finds them by words and, with an embedder, by meaning.

    Any number of instances may have the file open; a recall reads a snapshot and never waits for a
    writer.
    """

    kind: ClassVar[str] = "holographic"
    placement: ClassVar[Placement] = "local"

    def __init__(self, config: ProviderConfig) -> None:
        """Keep the configuration; the file is opened by `open`.

        Raises:
            ConfigError: an option is wrong.
        """
        super().__init__(config)
        self.path = config.home / FILE_NAME
        self._options = read_meaning(config, MeaningOptions)

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options, all of which are about search by meaning."""
        return option_rows(MeaningOptions)

    def open(self) -> None:
        """Open the database, creating it if it is missing.

        Raises:
            Unavailable: the file is not a database, is damaged or of another release (the message
                names it and the remedy); or the key of the embedder is missing.
            MissingProvider: a library that the embedder needs is not installed.
        """
        if self.facts is not None:
            return
        if not self._options.embedder:
            self.facts = HolographicStore(self.path, self.config.clock)
            return
        meaning = self._meaning_of(self._options)
        self.facts = HolographicStore(self.path, self.config.clock, meaning.make_search)
        self.meaning = meaning

    def backup_paths(self) -> Sequence[Path]:
        """Return the database and the two files that SQLite may keep next to it."""
        return [self.path.with_name(FILE_NAME + end) for end in ("", "-wal", "-shm")]

    def _meaning_of(self, options: MeaningOptions) -> "SqliteMeaning":
        try:
            from memorybus_providers.holographic.meaning.meaning import SqliteMeaning

            return SqliteMeaning(self.path, self.config, options)
        except ImportError as error:
            raise missing_library(self.config, options, error) from error
