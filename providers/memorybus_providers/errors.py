"""The errors a provider raises, re-exported: an author needs no other import."""

from memorybus.errors import (
    LeaseLost,
    MissingProvider,
    Permanent,
    ProviderError,
    Transient,
    Unavailable,
)

__all__ = [
    "LeaseLost",
    "MissingProvider",
    "Permanent",
    "ProviderError",
    "Transient",
    "Unavailable",
]
