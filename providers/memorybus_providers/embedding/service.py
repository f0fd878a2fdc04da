"""Gets vectors by HTTP from any service that answers ``POST …/embeddings`` as OpenAI's does."""

from collections.abc import Sequence

import msgspec
import numpy as np
from memorybus.clock import Clock
from memorybus.errors import Unavailable

from memorybus_providers.embedding.embedder import Prompts, Vectors
from memorybus_providers.remote.http import HttpService

_PATH = "/embeddings"


class _Item(msgspec.Struct, frozen=True):
    """One vector of an answer, and the number of its text."""

    index: int
    embedding: list[float]


class _Answer(msgspec.Struct, frozen=True):
    """A service's answer."""

    data: list[_Item]


class ServiceEmbedder(HttpService):
    """Asks a service.

    Args:
        url: its address up to ``/v1``.
        model: the model to ask for.
        prompts: what the model wants before texts.
        key: the key, which is sent as a bearer token if it is not empty.
        seconds: how long one request may take.
    """

    def __init__(
        self, url: str, model: str, prompts: Prompts, key: str, seconds: float, clock: Clock
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(url, headers, key, clock, name=f"{url.rstrip('/')}{_PATH}")
        self.model = prompts.known_by(model)
        self._requested = model
        self._prompts = prompts
        self._seconds = seconds

    def embed(self, texts: Sequence[str], *, asked: bool = False) -> Vectors:
        """Return one vector for each text; see `Embedder.embed`."""
        given = self._prompts.before(texts, asked=asked)
        body = {"model": self._requested, "input": given, "encoding_format": "float"}
        answer = self.request_json(_Answer, "POST", _PATH, self._seconds, body)
        by_text = {item.index: item.embedding for item in answer.data}
        try:
            vectors = np.array([by_text[n] for n in range(len(texts))], dtype=np.float32)
        except (LookupError, ValueError) as error:
            raise Unavailable(f"{self.name}: its answer cannot be read: {error}") from error
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise Unavailable(f"{self.name}: its answer does not have {len(texts)} vectors")
        return vectors

    def error_detail(self, answer: bytes) -> str:
        """Return what the service answers, since each kind of service has a form of its own."""
        return answer.decode(errors="replace")
