"""Runs Mem0's open-source library in this process, on a store that several processes can reach.

Mem0's history database is not used: the bus's log is the history, and erased texts must not remain
anywhere.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from memorybus.errors import ConfigError, Permanent, ProviderError
from memorybus.msgspec_types import prepared

from memorybus_providers.base import ProviderConfig
from memorybus_providers.mem0.memories import Filters, Mem0Memory, Messages, OwnerIds
from memorybus_providers.mem0.options import LibraryOptions
from memorybus_providers.remote import http
from memorybus_providers.remote.options import read_private

if TYPE_CHECKING:
    from mem0 import Memory

_MAX_MEMORIES = 100_000  # the most memories of one listing; without it Mem0 shows 20

_THRESHOLD = 0.1
_MAX_TRIES = 3
_TRANSIENT_ERROR_WORDS: Final = ("Timeout", "Connection", "Operational", "SearchPool", "Unexpected")
"""Words in the names of temporary errors of the libraries that Mem0 uses."""


class LibraryStore:
    """The store that Mem0's configuration names."""

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory

    def close(self) -> None:
        """Release connections."""
        self._memory.close()

    def add(
        self,
        messages: Messages,
        owner: OwnerIds,
        run: str,
        metadata: dict[str, str],
        *,
        infer: bool,
        deadline: float,
    ) -> None:
        """Store what was said in a run."""
        ids = msgspec.structs.asdict(owner)
        with _translate_errors():
            self._memory.add(messages, **ids, run_id=run, metadata=metadata, infer=infer)

    def rows_of_run(self, owner: OwnerIds, run: str, deadline: float) -> Sequence[Mem0Memory]:
        return list(self.list_rows({**msgspec.structs.asdict(owner), "run_id": run}, deadline))

    def search(
        self, query: str, filters: Filters, most: int, deadline: float
    ) -> Sequence[Mem0Memory]:
        """Return memories with these ids and metadata, best first."""
        with _translate_errors():
            found = self._memory.search(
                query, filters=dict(filters), top_k=most, threshold=_THRESHOLD
            )
        return _rows(found)

    def rows_containing(self, text: str, filters: Filters, deadline: float) -> Sequence[Mem0Memory]:
        """Return memories with these ids and metadata that contain a text."""
        return [row for row in self.list_rows(filters, deadline) if text in row.memory]

    def list_rows(self, filters: Filters, deadline: float) -> Iterator[Mem0Memory]:
        """Yield all memories with these ids and metadata."""
        with _translate_errors():
            found = self._memory.get_all(filters=dict(filters), top_k=_MAX_MEMORIES)
        yield from _rows(found)

    def delete(self, row: str, deadline: float) -> None:
        """Delete a memory; it is not an error if it does not exist."""
        with _translate_errors():
            if self._memory.get(row) is not None:
                self._memory.delete(row)

    def delete_all(self, ids: Filters, deadline: float) -> None:
        """Delete all memories with these ids."""
        with _translate_errors():
            self._memory.delete_all(**ids)

    def residue(self) -> tuple[str, ...]:
        """Return nothing: no remains of a deletion are known."""
        return ()


class NoHistory:
    """Replaces Mem0's history database, which keeps all texts, even erased ones."""

    def add_history(self, *_: object, **__: object) -> None:
        """Ignore a change."""

    def batch_add_history(self, records: object) -> None:
        """Ignore several changes."""

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return no changes."""
        return []

    def save_messages(self, messages: object, session_scope: str) -> None:
        """Ignore the last messages."""

    def get_last_messages(self, session_scope: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return no last messages: here each event is its own scope, so there are none."""
        return []

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def open_store(config: ProviderConfig, options: LibraryOptions) -> LibraryStore:
    """Return a store; Mem0 makes its collection if it is missing.

    Raises:
        ImportError: Mem0 or the client of the store is not installed.
        ConfigError: the file cannot be read, others may read it, or it names an embedded store.
        Transient: the store does not answer.
    """
    settings = _read_config(Path(options.config_file).expanduser(), f"provider {config.name}")
    config.home.mkdir(parents=True, exist_ok=True)
    # Mem0 reads both variables when it is imported. Without them it would send telemetry, and
    # write into the user's home.
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    os.environ.setdefault("MEM0_DIR", str(config.home))
    from mem0 import Memory

    settings["history_db_path"] = ":memory:"
    with _translate_errors():
        memory = _make_with_retries(lambda: Memory.from_config(settings))
    memory.db.close()
    memory.db = NoHistory()
    return LibraryStore(memory)


def _make_with_retries(make: Callable[[], "Memory"]) -> "Memory":
    """Make a store; try again if another process makes the same collection at the same time.

    Only one of these processes succeeds at the first try.
    """
    for _ in range(_MAX_TRIES - 1):
        try:
            return make()
        except Exception as error:
            if "already exists" not in str(error) and "duplicate key" not in str(error):
                raise
    return make()


def _read_config(path: Path, who: str) -> dict[str, Any]:
    text = read_private(path, who, "config_file")
    try:
        settings = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{who}: config_file {path} cannot be read: {error}") from error
    if _is_embedded(settings.get("vector_store")):
        raise ConfigError(
            f"{who}: {path} names a store within one process; lanes and recalls are several: "
            "let vector_store be a server, such as pgvector, or use holographic"
        )
    return settings


def _is_embedded(store: Any) -> bool:
    """Return whether a store is in files that one process locks, like Mem0's default store."""
    if not isinstance(store, Mapping):
        return True
    provider, settings = store.get("provider", "qdrant"), store.get("config") or {}
    if provider == "faiss":
        return True
    remote = {"url", "host", "client", "connection_string", "api_key"} & set(settings)
    return provider in {"qdrant", "chroma"} and not remote


def _rows(found: Mapping[str, Any]) -> list[Mem0Memory]:
    return msgspec.convert(found["results"], prepared(list[Mem0Memory]))


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of Mem0 and of the libraries that it uses.

    Their messages are not repeated, since they may contain what was said.
    """
    try:
        yield
    except (ConfigError, ImportError, ProviderError):
        raise
    except Exception as error:
        raise _to_provider_error(error) from error


def _to_provider_error(error: Exception) -> ProviderError:
    """Return the provider's error for a failure, by its innermost cause of a known kind.

    Mem0 wraps the errors of the clients of its model and its store.
    """
    for cause in _causes(error):
        message = f"Mem0: {type(cause).__name__}"
        status = getattr(cause, "status_code", None)
        if isinstance(status, int):
            return http.error_for_status(status, f"{message} ({status})")
        names = " ".join(kind.__name__ for kind in type(cause).__mro__)
        if isinstance(cause, OSError) or any(word in names for word in _TRANSIENT_ERROR_WORDS):
            return http.error_for_connection(cause, message)
    return Permanent(f"Mem0: {type(error).__name__}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error's causes, the innermost first, and then the error."""
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
    yield error
