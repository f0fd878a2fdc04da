"""A service that embeds deterministically: words of one meaning are one direction.

A text's vector is the sum of its words' directions, each drawn from the digest of the word, or of
the meaning that `MEANINGS` gives it. Small words have none. Asked for `dimensions` or base64, it
answers so, as OpenAI does.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Final

import numpy as np

from helpers.services.fake_http import FailingServer, FakeHandler, serving

SIZE: Final = 1024

_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dwelling": "live lives living home house flat apartment resides address dwell",
        "pet": "pet pets dog puppy terrier cat kitten",
        "work": "job work works profession occupation employed nurse carpenter earns living",
        "vehicle": "car vehicle drive drives sedan automobile",
        "meal": "dinner supper meal eat eats ate food",
        "sick": "ill sick unwell flu fever illness",
        "money": "money cash salary wage paid",
        "wed": "wife husband spouse married wedding",
        "fear": "afraid scared frightens fear fears",
        "child": "child children son daughter kids",
    }
)
MEANINGS: Final = MappingProxyType(
    {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
)
_SMALL = """
a an the i me my you your she he her his it its we our they their is are was were be been am do does
did has have had what which who whom where when how why of to in on at for with and or but that this
there not no so as by from about into out up
"""
SMALL: Final = frozenset(_SMALL.split())
_WORD = re.compile(r"\w+")


class EmbeddingServer(FailingServer):
    """Answers ``POST /v1/embeddings``.

    Attributes:
        asked: the texts of all requests that were answered.
        keys: the ``Authorization`` headers that came.
        gate: cleared, it holds up every answer until it is set again.
        refused: texts that are answered 400, with all that come with them.
        size: numbers of a vector.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.asked: list[str] = []
        self.keys: list[str | None] = []
        self.gate = threading.Event()
        self.gate.set()
        self.refused: frozenset[str] = frozenset()
        self.size = SIZE

    @property
    def address(self) -> str:
        """What the option ``embedder`` names."""
        return f"{self.url}/v1"


class _Handler(FakeHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        asked = json.loads(self.body())
        server = self.server
        server.gate.wait(30)
        with server.lock:
            server.keys.append(self.headers.get("Authorization"))
            if self.path != "/v1/embeddings":
                return self.tell(404, {"error": "no such path"})
            if server.refuse:
                server.refuse -= 1
                return self.tell(503, {"error": f"busy; {self.headers.get('Authorization')}"})
            if server.refused & set(asked["input"]):
                return self.tell(400, {"error": "too long"})
            server.asked += asked["input"]
        rows = embed(asked["input"], int(asked.get("dimensions") or server.size))
        vectors = map(_packed, rows) if asked.get("encoding_format") == "base64" else rows.tolist()
        data = [{"index": i, "embedding": v, "object": "embedding"} for i, v in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        model = asked["model"]
        return self.tell(200, {"object": "list", "model": model, "data": data, "usage": usage})


def _packed(row: np.ndarray) -> str:
    """Return a vector as clients of OpenAI ask for it: little-endian floats in base64."""
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def embedding_server() -> AbstractContextManager[EmbeddingServer]:
    """Serve while the block runs."""
    return serving(EmbeddingServer())


def embed(texts: Sequence[str], size: int = SIZE) -> np.ndarray:
    return np.array([_vector(_WORD.findall(text.lower()), size) for text in texts])


def _vector(words: Iterable[str], size: int) -> np.ndarray:
    directions = [_direction(MEANINGS.get(w, w), size) for w in words if w not in SMALL]
    return np.sum(directions, axis=0) if directions else np.zeros(size)


def _direction(meaning: str, size: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(meaning.encode()).digest()[:8])
    return np.random.default_rng(seed).standard_normal(size) / np.sqrt(size)
