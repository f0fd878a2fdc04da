"""The options of search by meaning, read from an instance's table; imports nothing heavy."""

from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.models import FETCHED, is_service, resolve
from memorybus_providers.options import Options, read_options

_MOST_TEXTS = 2_048  # the most texts that services accept in one request

_Embedder = Annotated[
    str,
    Meta(
        description="what makes vectors of texts, so that facts are found by meaning too: the "
        "address of an OpenAI-compatible service (http://localhost:11434/v1); the directory of an "
        "ONNX model (/models/e5), or its name in `models` of the data directory; a model's name at "
        "fastembed (fastembed:BAAI/bge-small-en-v1.5), which this command fetches; `none` "
        "compares words alone",
        extra={"hint": "empty: the model in models/default of the data directory, if there is one"},
    ),
]
_Model = Annotated[
    str,
    Meta(
        description="the model's name: what the service is asked for, and what vectors are "
        "known by; of a directory its own name if not given"
    ),
]
_Key = Annotated[
    str,
    Meta(
        description="the name of the environment variable that holds the service's API key",
        extra={"secret": True},
    ),
]
_Wait = Annotated[
    float,
    Meta(
        description="seconds that an answer waits for the vector of its question; after that "
        "words alone answer"
    ),
]
_Question = Annotated[
    str,
    Meta(
        description="what the model wants before a question, for example 'query: '; if empty, "
        "what the model's directory names"
    ),
]
_Text = Annotated[
    str,
    Meta(
        description="what the model wants before a fact, for example 'passage: '; if empty, "
        "what the model's directory names"
    ),
]


class MeaningOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of every store of facts."""

    embedder: _Embedder = ""
    embedder_model: _Model = ""
    embedder_key: _Key = ""
    embedder_timeout: Annotated[float, Meta(description="seconds for one request")] = 30.0
    embedder_batch: Annotated[int, Meta(description="facts of one request, at most 2048")] = 32
    embedder_wait: _Wait = 0.12
    embedder_question: _Question = ""
    embedder_text: _Text = ""

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {
            "embedder_model must name the service's model": bool(self.embedder_model)
            or not self.by_service,
            "embedder_timeout must be positive": self.embedder_timeout > 0,
            "embedder_wait must not be negative": self.embedder_wait >= 0,
            f"embedder_batch must be 1 to {_MOST_TEXTS}": 1 <= self.embedder_batch <= _MOST_TEXTS,
        }

    @property
    def by_service(self) -> bool:
        """Whether a service makes the vectors, instead of a model on disk."""
        return is_service(self.embedder)

    @property
    def fetched(self) -> str:
        """The model that is fetched by its name; empty for any other embedder."""
        return self.embedder.removeprefix(FETCHED) if self.embedder.startswith(FETCHED) else ""


M = TypeVar("M", bound=MeaningOptions)


def cache_of(config: ProviderConfig) -> Path:
    """Return where models are kept that were fetched by their names."""
    return (config.models or config.home) / "fastembed"


def read_meaning(config: ProviderConfig, kind: type[M]) -> M:
    """Return the options of a store of facts, with the place of a model that they name.

    Raises:
        ConfigError: an option is unknown, has the wrong type or breaks a rule.
    """
    options = read_options(config, kind)
    return msgspec.structs.replace(options, embedder=resolve(options.embedder, config.models))
