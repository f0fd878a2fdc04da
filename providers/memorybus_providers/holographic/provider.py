"""The holographic provider: hooks in, recollections out; the parts do the work."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memorybus.errors import MissingProvider

from memorybus_providers.base import (
    Fence,
    Placement,
    Progress,
    ProviderConfig,
    RecallScope,
    Residue,
    Transaction,
)
from memorybus_providers.embedding.options import SCHEMA, MeaningOptions, options_of
from memorybus_providers.fact_provider import FactProvider
from memorybus_providers.holographic.store import HolographicStore

if TYPE_CHECKING:  # numpy is imported by who has an embedder
    from memorybus_providers.holographic.meaning.meaning import Meaning

FILE_NAME = "holographic.db"


class HolographicProvider(FactProvider):
    """Facts in one SQLite file, found by words and, with an embedder, by meaning.

    It is a `FactProvider`. Any number of instances may have the file open; recall reads a snapshot
    and never waits for a writer.
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
        self._options = options_of(config)
        self._meaning: Meaning | None = None

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def get_config_schema(cls) -> Sequence[Mapping[str, Any]]:
        """Return the options, all of which are about search by meaning."""
        return SCHEMA

    def open(self) -> None:
        """Open the database, creating it if it is missing.

        Raises:
            Unavailable: the file is no database, damaged or of another release; the message
                names it and the remedy. Or the key of the embedder is missing.
            MissingProvider: what the embedder needs is not installed.
        """
        if self.facts is not None:
            return
        if not self._options.embedder:
            self.facts = HolographicStore(self.path, self.config.clock)
            return
        meaning = self._meaning_of(self._options)
        self.facts = HolographicStore(self.path, self.config.clock, meaning.searching)
        self._meaning = meaning

    def shutdown(self) -> None:
        """Close the database; an open transaction is rolled back."""
        if self._meaning is not None:
            self._meaning.close()
            self._meaning = None
        super().shutdown()

    def report(self) -> str:
        """Say how many facts have no vector yet, and why if that is known."""
        meaning = self._meaning
        return meaning.report if meaning else ""

    def backup_paths(self) -> Sequence[Path]:
        """Return the database and the two files SQLite may keep beside it."""
        return [self.path.with_name(FILE_NAME + end) for end in ("", "-wal", "-shm")]

    # -- what is kept of somebody -------------------------------------------------------------

    def forget(self, scope: RecallScope) -> Residue:
        """Erase a scope's facts and all that was made of them; what a service was sent is named."""
        residue = super().forget(scope)
        if not (residue.erased and self._options.by_service):
            return residue
        sent = "the service that embeds facts was sent them; whether it keeps any, it alone knows"
        return Residue(residue.erased, (*residue.remains, sent))

    # -- the lane -----------------------------------------------------------------------------

    def progress(self, lane: str) -> Progress | None:
        """Return the lane's committed progress, or None if the store has never seen it."""
        self._fill()
        return super().progress(lane)

    @contextmanager
    def transaction(self, fence: Fence) -> Iterator[Transaction]:
        """Open a transaction, and let what it brought get its vectors; see `FactProvider`."""
        with self.opened.lane(fence) as opened:
            yield opened
        self._fill()

    def _fill(self) -> None:
        """Let the facts of a committed transaction get their vectors: we have lanes."""
        if self._meaning is not None:
            self._meaning.fill()

    def _meaning_of(self, options: MeaningOptions) -> "Meaning":
        try:
            from memorybus_providers.holographic.meaning.meaning import Meaning

            return Meaning(self.path, self.config, options)
        except ImportError as error:
            extra = "embeddings" if options.by_service else "static-embeddings"
            raise MissingProvider(
                f"provider {self.config.name}: its embedder needs {error.name}; "
                f"install it with: pip install 'memorybus[{extra}]'"
            ) from error
