"""Makes vectors with a static model on disk, a table of words that model2vec reads; no network."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from memorybus.errors import Unavailable

from memorybus_providers.embedding.embedder import Vectors


class StaticEmbedder:
    """Reads its model at the first call.

    Args:
        directory: where the model is; nothing is ever downloaded.
        model: its name; if it is empty, the name of the directory is used.
    """

    def __init__(self, directory: str, model: str) -> None:
        """Read nothing yet."""
        self._directory = Path(directory).expanduser()
        self.model = model or self._directory.name
        self._lock = threading.Lock()
        self._loaded: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text; see `Embedder.embed`."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load_model()
            found = self._loaded.encode(list(texts), use_multiprocessing=False)
        return np.asarray(found, dtype=np.float32)

    def close(self) -> None:
        """Forget the model."""
        with self._lock:
            self._loaded = None

    def _load_model(self) -> Any:
        if not self._directory.is_dir():
            raise Unavailable(f"embedder: {self._directory} does not contain a model2vec model")
        from model2vec import StaticModel

        try:
            return StaticModel.from_pretrained(str(self._directory))
        except Exception as error:  # damaged files may raise any error
            raise Unavailable(f"embedder: {self._directory} cannot be read: {error}") from error
