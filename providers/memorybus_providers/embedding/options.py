"""The options of search by meaning, read from an instance's table; imports nothing heavy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from memorybus.errors import ConfigError
from memorybus.msgspec_types import prepared

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.models import FETCHED, is_service, resolve

_MOST_TEXTS = 2_048  # the most texts that services accept in one request


class MeaningOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options; `SCHEMA` describes each."""

    embedder: str = ""
    embedder_model: str = ""
    embedder_key: str = ""
    embedder_timeout: float = 30.0
    embedder_batch: int = 32
    embedder_wait: float = 0.12
    embedder_question: str = ""
    embedder_text: str = ""

    @property
    def by_service(self) -> bool:
        """Whether a service makes the vectors, instead of a model on disk."""
        return is_service(self.embedder)

    @property
    def fetched(self) -> str:
        """The model that is fetched by its name; empty for any other embedder."""
        return self.embedder.removeprefix(FETCHED) if self.embedder.startswith(FETCHED) else ""


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "embedder",
        "description": "what makes vectors of texts, so that facts are found by meaning too: the "
        "address of an OpenAI-compatible service (http://localhost:11434/v1); the directory of an "
        "ONNX model (/models/e5), or its name in `models` of the data directory; a model's name at "
        "fastembed (fastembed:BAAI/bge-small-en-v1.5), which this command fetches; `none` "
        "compares words alone",
        "default": "",
        "hint": "empty: the model in models/default of the data directory, if there is one",
    },
    {
        "key": "embedder_model",
        "description": "the model's name: what the service is asked for, and what vectors are "
        "known by; of a directory its own name if not given",
        "default": "",
    },
    {
        "key": "embedder_key",
        "description": "the name of the environment variable that holds the service's API key",
        "default": "",
        "secret": True,
    },
    {"key": "embedder_timeout", "description": "seconds for one request", "default": 30.0},
    {"key": "embedder_batch", "description": "facts of one request, at most 2048", "default": 32},
    {
        "key": "embedder_wait",
        "description": "seconds that an answer waits for the vector of its question; after that "
        "words alone answer",
        "default": 0.12,
    },
    {
        "key": "embedder_question",
        "description": "what the model wants before a question, for example 'query: '; if empty, "
        "what the model's directory names",
        "default": "",
    },
    {
        "key": "embedder_text",
        "description": "what the model wants before a fact, for example 'passage: '; if empty, "
        "what the model's directory names",
        "default": "",
    },
)


def cache_of(config: ProviderConfig) -> Path:
    """Return where models are kept that were fetched by their names."""
    return (config.models or config.home) / "fastembed"


def options_of(config: ProviderConfig) -> MeaningOptions:
    """Return an instance's options.

    Raises:
        ConfigError: an option is unknown, has the wrong type or is out of bounds.
    """
    try:
        found = msgspec.convert(dict(config.options), prepared(MeaningOptions))
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if found.by_service and not found.embedder_model:
        raise ConfigError(f"provider {config.name}: embedder_model must name the service's model")
    if found.embedder_timeout <= 0 or found.embedder_wait < 0:
        raise ConfigError(
            f"provider {config.name}: embedder_timeout must be positive, and embedder_wait not "
            "negative"
        )
    if not 1 <= found.embedder_batch <= _MOST_TEXTS:
        raise ConfigError(f"provider {config.name}: embedder_batch must be 1 to {_MOST_TEXTS}")
    return msgspec.structs.replace(found, embedder=resolve(found.embedder, config.models))
