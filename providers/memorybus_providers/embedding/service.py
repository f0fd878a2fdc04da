"""Gets vectors by HTTP from any service that answers ``POST …/embeddings`` as OpenAI's does."""

from collections.abc import Sequence

import msgspec
import numpy as np
import urllib3
from memorybus.errors import Permanent, Unavailable
from memorybus.msgspec_types import prepared

from memorybus_providers.embedding.embedder import Prompts, Vectors

_REFUSED_STATUSES = frozenset({400, 413, 422})
"""Statuses that concern the texts; all others concern the service or its settings."""

_MAX_ANSWER_BYTES = 1 << 26  # the most bytes of an answer (G10)

_MAX_QUOTED_CHARS = 200  # the most characters of an answer that an error shows


class _Item(msgspec.Struct, frozen=True):
    """One vector of an answer, and the number of its text."""

    index: int
    embedding: list[float]


class _Answer(msgspec.Struct, frozen=True):
    """A service's answer."""

    data: list[_Item]


class ServiceEmbedder:
    """Asks a service. It follows no redirect, so that the key is sent only to the configured
    address.

    Args:
        url: its address up to ``/v1``.
        model: the model to ask for.
        prompts: what the model wants before texts.
        key: the key, which is sent as a bearer token if it is not empty.
        seconds: how long one request may take to connect, and for each piece of its answer.
    """

    def __init__(self, url: str, model: str, prompts: Prompts, key: str, seconds: float) -> None:
        self.model = prompts.known_by(model)
        self._requested = model
        self._prompts = prompts
        self._url = f"{url.rstrip('/')}/embeddings"
        self._key = key
        self._pool = urllib3.PoolManager(timeout=seconds, retries=False, maxsize=2)

    def embed(self, texts: Sequence[str], *, asked: bool = False) -> Vectors:
        """Return one vector for each text; see `Embedder.embed`."""
        given = self._prompts.before(texts, asked=asked)
        body = {"model": self._requested, "input": given, "encoding_format": "float"}
        status, answered = self._request(msgspec.json.encode(body))
        if status != 200:
            raise self._error_of(status, answered)
        return self._vectors(answered, len(texts))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _request(self, question: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            answer = self._pool.request(
                "POST",
                self._url,
                body=question,
                headers=headers,
                redirect=False,
                preload_content=False,
            )
            body = answer.read(_MAX_ANSWER_BYTES)
            if len(body) == _MAX_ANSWER_BYTES:
                answer.close()  # drop the rest of the answer
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unavailable(self._mask_key(f"{self._url}: {error}")) from error
        return answer.status, body

    def _vectors(self, answered: bytes, wanted: int) -> Vectors:
        try:
            items = msgspec.json.decode(answered, type=prepared(_Answer)).data
            by_text = {item.index: item.embedding for item in items}
            found = np.array([by_text[number] for number in range(wanted)], dtype=np.float32)
        except (msgspec.MsgspecError, UnicodeError, LookupError, ValueError) as error:
            raise Unavailable(f"{self._url}: its answer cannot be read: {error}") from error
        if found.ndim != 2 or not found.size or not np.isfinite(found).all():
            raise Unavailable(f"{self._url}: its answer does not have {wanted} vectors")
        return found

    def _error_of(self, status: int, answered: bytes) -> Permanent | Unavailable:
        said = " ".join(answered[: 4 * _MAX_QUOTED_CHARS].decode("utf-8", "replace").split())[
            :_MAX_QUOTED_CHARS
        ]
        text = self._mask_key(f"{self._url} answers {status}: {said}")
        return Permanent(text) if status in _REFUSED_STATUSES else Unavailable(text)

    def _mask_key(self, text: str) -> str:
        """Return a text without the key: some services repeat it in their error messages."""
        return text.replace(self._key, "***") if self._key else text
