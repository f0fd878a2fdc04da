"""The model that derivers and the curator may ask, and what it may cost: one table of settings."""

from collections.abc import Collection
from typing import Annotated, Literal

import msgspec

from memorybus.errors import ConfigError

Amount = Annotated[int, msgspec.Meta(ge=0)]
Price = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model behind an endpoint that is compatible with OpenAI's; no address means none.

    The limits hold over all workers; 0 is no limit. Hours and months are those of UTC.

    Attributes:
        base_url: the service's address up to ``/v1``.
        name: the model to ask for.
        api_key_env: the environment variable of the workers that has the service's key.
        api_key_file: or a file with the key, which only its owner may read.
        timeout: seconds for a whole answer.
        answer_tokens: the most tokens of one answer.
        answer_limit: the field of a request that has this bound; OpenAI's reasoning models want
            ``max_completion_tokens``, which others ignore.
        calls_per_hour: the most calls of an hour.
        tokens_per_hour: the most tokens of an hour, those of questions and of answers together.
        calls_per_month: the most calls of a month.
        tokens_per_month: the most tokens of a month.
        calls_per_person: the most calls of a month for one person.
        tokens_per_person: the most tokens of a month for one person.
        prices: what a million tokens of questions and a million of answers cost, by model.
    """

    base_url: str = ""
    name: str = ""
    api_key_env: str = ""
    api_key_file: str = ""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=600)] = 60.0
    answer_tokens: Annotated[int, msgspec.Meta(gt=0)] = 2_000
    answer_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    calls_per_hour: Amount = 120
    tokens_per_hour: Amount = 500_000
    calls_per_month: Amount = 0
    tokens_per_month: Amount = 20_000_000
    calls_per_person: Amount = 0
    tokens_per_person: Amount = 2_000_000
    prices: dict[str, tuple[Price, Price]] = {}

    def __post_init__(self) -> None:
        """Refuse an address without a model, and one that is no address."""
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must begin with http:// or https://")
        if bool(self.base_url) != bool(self.name):
            raise ValueError("name base_url and name together")
        if self.api_key_env and self.api_key_file:
            raise ValueError("name api_key_env or api_key_file, not both")

    @property
    def limits(self) -> tuple[tuple[str, int], ...]:
        """The limits by name, in the order of the script that keeps them."""
        return tuple((name, getattr(self, name)) for name in LIMITS)


LIMITS = tuple(name for name in ModelSettings.__struct_fields__ if "_per_" in name)


def check_derivers(derivers: Collection[str], model: ModelSettings) -> None:
    """Refuse the deriver that asks a model where there is none.

    Raises:
        ConfigError: the message names both settings.
    """
    if "model" in derivers and not model.base_url:
        raise ConfigError(
            "derivers names model, and the setting model has no base_url; name one, or leave that "
            "deriver out"
        )
