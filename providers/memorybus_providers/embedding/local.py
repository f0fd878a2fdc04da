"""Makes vectors with an ONNX model in a directory, by onnxruntime and tokenizers; no network."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from memorybus.errors import Unavailable
from memorybus.msgspec_types import prepared

from memorybus_providers.embedding.embedder import Prompts, Vector, Vectors
from memorybus_providers.embedding.models import MODEL

TOKENIZER: Final = "tokenizer.json"
POOLING: Final = "1_Pooling/config.json"
PROMPTS: Final = "config_sentence_transformers.json"
LIMITS: Final = "sentence_bert_config.json"

MAX_TOKENS = 512  # the most tokens of a text that are embedded, even if its model takes more (G10)

_DIGITS = 12

_T = TypeVar("_T")


class Pooling(msgspec.Struct, frozen=True):
    """Whether the first token's vector is the text's; if not, the mean of all is."""

    pooling_mode_cls_token: bool = False


class _Limits(msgspec.Struct, frozen=True):
    max_seq_length: int | None = None


class _Wanted(msgspec.Struct, frozen=True):
    prompts: Mapping[str, str] = {}


class LocalEmbedder:
    """Runs a model on one thread, since the processes of a machine share its cores.

    The files that sentence-transformers puts beside a model are followed if they are there: how the
    vectors of tokens become that of the text, how many tokens a text may have, and the prompts.

    Args:
        directory: where `MODEL` and `TOKENIZER` are.
        name: the model's name; the directory's if it is empty.
        prompts: what the model wants before texts; what its own files name if they are empty.
    """

    def __init__(self, directory: Path, name: str, prompts: Prompts) -> None:
        self._directory = directory
        self._name = name or directory.name
        self._configured = prompts
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @cached_property
    def model(self) -> str:
        """Its name with a digest of its files, so that another one of the same name is noticed."""
        digest = hashlib.sha256()
        for name in (MODEL, TOKENIZER, POOLING):
            digest.update(self._digest_of(name))
        return self._prompts.known_by(f"{self._name} {digest.hexdigest()[:_DIGITS]}")

    def embed(self, texts: Sequence[str], *, asked: bool = False) -> Vectors:
        """Return one vector for each text; see `Embedder.embed`."""
        given = self._prompts.before(texts, asked=asked)
        with self._lock:
            session, tokenizer = self._loaded = self._loaded or self._load()
            return np.array([self._run(session, one) for one in tokenizer.encode_batch(given)])

    def close(self) -> None:
        """Forget the model."""
        with self._lock:
            self._loaded = None

    def _run(self, session: Any, text: Any) -> Vector:
        """Run the model on one text: on one thread, a batch with its padding takes longer."""
        given = {
            "input_ids": text.ids,
            "attention_mask": text.attention_mask,
            "token_type_ids": text.type_ids,
        }
        wanted = [one.name for one in session.get_inputs()]
        (output, *_) = session.run(None, {name: np.array([given[name]]) for name in wanted})
        vector = output[0]
        if vector.ndim > 1:  # else the model pools by itself
            vector = vector[0] if self._pooling.pooling_mode_cls_token else vector.mean(axis=0)
        return np.asarray(vector, dtype=np.float32)

    def _load(self) -> tuple[Any, Any]:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        limit = self._read(LIMITS, _Limits).max_seq_length or MAX_TOKENS
        try:
            tokenizer = Tokenizer.from_file(str(self._directory / TOKENIZER))
            tokenizer.no_padding()
            tokenizer.enable_truncation(min(limit, MAX_TOKENS))
            session = onnxruntime.InferenceSession(
                self._directory / MODEL, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # damaged files may raise any error
            raise self._unreadable(error) from error
        return session, tokenizer

    @cached_property
    def _prompts(self) -> Prompts:
        wanted = self._read(PROMPTS, _Wanted).prompts
        fact = wanted.get("document", wanted.get("passage", ""))
        return Prompts(
            self._configured.question or wanted.get("query", ""), self._configured.fact or fact
        )

    @cached_property
    def _pooling(self) -> Pooling:
        return self._read(POOLING, Pooling)

    def _read(self, name: str, kind: type[_T]) -> _T:
        """Return what a file beside the model declares; the usual if there is no such file."""
        try:
            return msgspec.json.decode((self._directory / name).read_bytes(), type=prepared(kind))
        except FileNotFoundError:
            return kind()
        except (OSError, msgspec.MsgspecError) as error:
            raise self._unreadable(error) from error

    def _digest_of(self, name: str) -> bytes:
        try:
            with (self._directory / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").digest()
        except FileNotFoundError as error:
            if name == POOLING:
                return b""
            raise self._unreadable(error) from error
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> Unavailable:
        return Unavailable(f"embedder: the model in {self._directory} cannot be read: {error}")
