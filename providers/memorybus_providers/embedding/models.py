"""Where this host's models are, and which of them an option names; imports nothing heavy."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MODEL: Final = "model.onnx"  # the file by which a directory is known to hold a model

DEFAULT: Final = "default"  # the model that is used if no other is named

NONE: Final = "none"  # named instead of a model, words alone are compared

FETCHED: Final = "fastembed:"  # before the name of a model that `memorybus provider setup` fetches

_LIBRARIES = ("onnxruntime", "tokenizers", "numpy")


def is_service(embedder: str) -> bool:
    """Return whether an option names a service, instead of a model on this host."""
    return embedder.startswith(("http://", "https://"))


def missing_libraries(names: Sequence[str] = _LIBRARIES) -> list[str]:
    """Return which libraries, by default of models in directories, are not installed."""
    return [name for name in names if find_spec(name) is None]


def directory_of(name: str, models: Path) -> Path:
    """Return where a model is that is known by a name such as ``intfloat/e5-small``."""
    return models / name.replace("/", "--")


def resolve(embedder: str, models: Path | None) -> str:
    """Return the service, model or directory that an option names; "" if words alone are compared.

    Args:
        models: the directory of this host's models.
    """
    if embedder == NONE:
        return ""
    named = is_service(embedder) or embedder.startswith(FETCHED)
    if named or models is None or Path(embedder).expanduser().is_absolute():
        return embedder
    if embedder:
        return str(directory_of(embedder, models))
    path = models / DEFAULT
    return str(path) if (path / MODEL).is_file() and not missing_libraries() else ""
