"""The errors a provider raises, re-exported: an author needs no other import."""

from memorybus.errors import (
    MissingProvider,
    Permanent,
    ProviderError,
    StaleEpoch,
    Transient,
    Unavailable,
)

__all__ = [
    "MissingProvider",
    "Permanent",
    "ProviderError",
    "StaleEpoch",
    "Transient",
    "Unavailable",
]
