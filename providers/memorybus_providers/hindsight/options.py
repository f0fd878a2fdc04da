"""The options of an instance, read from its table; imports nothing heavy."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from memorybus.errors import ConfigError

from memorybus_providers.base import ProviderConfig
from memorybus_providers.remote import credentials

Budget = Literal["low", "mid", "high"]
"""How thoroughly Hindsight searches (``budget``)."""

_BUDGETS: Final = ("low", "mid", "high")

_MOST_TURNS = 1_000


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See `SCHEMA`, which describes each."""

    base_url: str = "http://localhost:8888"
    prefix: str = "memorybus"
    timeout: float = 60.0
    queued: bool = False
    turns_per_document: int = 1
    prefetch: Literal["recall", "reflect"] = "recall"
    recall_budget: Budget = "mid"
    recall_tokens: int = 4_096
    reflect_budget: Budget = "low"
    reflect_tokens: int = 1_024
    api_key_env: str = ""
    api_key_file: str = ""


SCHEMA: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "base_url",
        "description": "the server's address",
        "default": "http://localhost:8888",
        "hint": "https://api.hindsight.vectorize.io for Hindsight Cloud",
    },
    *credentials.SCHEMA,
    {
        "key": "prefix",
        "description": "what the names of its banks begin with: each agent, person and workspace "
        "has one of its own; lower-case letters, digits and -, at most 20",
        "default": "memorybus",
    },
    {
        "key": "timeout",
        "description": "seconds for one write: Hindsight's model reads the text meanwhile",
        "default": 60.0,
    },
    {
        "key": "queued",
        "description": "whether turns and delegations are put into Hindsight's own queue: an event "
        "then counts when it is queued, and what the queue fails on is shown by Hindsight alone",
        "default": False,
    },
    {
        "key": "turns_per_document",
        "description": "1: a document for each turn; more: so many turns of a session in one "
        "document, so that Hindsight reads them in their context; at most 1000, and not queued",
        "default": 1,
    },
    {
        "key": "prefetch",
        "description": "what a recall asks Hindsight for: memories (recall), or an answer that its "
        "model makes of them (reflect), which takes seconds",
        "default": "recall",
        "choices": ("recall", "reflect"),
    },
    {
        "key": "recall_budget",
        "description": "how thoroughly a recall searches: low, mid or high",
        "default": "mid",
        "choices": _BUDGETS,
    },
    {"key": "recall_tokens", "description": "tokens of a recall at most", "default": 4_096},
    {
        "key": "reflect_budget",
        "description": "how thoroughly a reflection searches: low, mid or high",
        "default": "low",
        "choices": _BUDGETS,
    },
    {"key": "reflect_tokens", "description": "tokens of a reflection at most", "default": 1_024},
)

_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?")


def options_of(config: ProviderConfig) -> Options:
    """Return an instance's options.

    Raises:
        ConfigError: one is unknown, of the wrong type or out of its bounds.
    """
    try:
        found = msgspec.convert(dict(config.options), Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if wrong := _wrong(found):
        raise ConfigError(f"provider {config.name}: {wrong}")
    return found


def _wrong(found: Options) -> str:
    """Return what is wrong with the options, "" if nothing."""
    together = found.turns_per_document > 1
    checks = (
        (
            not found.base_url.startswith(("http://", "https://")),
            "base_url must begin with http:// or https://",
        ),
        (
            not _PREFIX.fullmatch(found.prefix),
            "prefix must be 1 to 20 lower-case letters, digits and inner hyphens",
        ),
        (found.timeout <= 0, "timeout must be positive"),
        (not 1 <= found.turns_per_document <= _MOST_TURNS, "turns_per_document must be 1 to 1000"),
        (
            found.queued and together,
            "queued and turns_per_document exclude each other: a document is read to be added to",
        ),
        (
            min(found.recall_tokens, found.reflect_tokens) < 1,
            "recall_tokens and reflect_tokens must be positive",
        ),
    )
    return next((message for wrong, message in checks if wrong), "")
