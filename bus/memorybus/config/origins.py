"""Lists each setting with its value and the origin of the value."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memorybus.config.parsing import PREFIX, convert_settings, format_value
from memorybus.config.settings import FIELDS, Layer, Settings
from memorybus.text.redact import masked


class EffectiveSetting(msgspec.Struct, frozen=True):
    """A setting with its present value.

    Attributes:
        name: its name.
        value: its value, as it would be written in the environment; credentials are masked.
        origin: ``default``, a file, a variable or an option.
    """

    name: str
    value: str
    origin: str


def effective_settings(layers: Sequence[Layer]) -> list[EffectiveSetting]:
    """Return all settings in their order, from what `settings.read_layers` read.

    Raises:
        ConfigError: a value is of the wrong type, or impossible.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        values |= layer.values
        origins |= {name: _describe_origin(layer, name) for name in layer.values}
    settings = convert_settings(values, Settings)
    return [_effective(settings, name, origins) for name in FIELDS]


def _effective(settings: Settings, name: str, origins: Mapping[str, str]) -> EffectiveSetting:
    value = masked(format_value(getattr(settings, name)), settings.secrets)
    return EffectiveSetting(name, value, origins.get(name, "default"))


def _describe_origin(layer: Layer, name: str) -> str:
    match layer.kind:
        case "environment":
            return PREFIX + name.upper()
        case "argument":
            return "--" + name.replace("_", "-")
        case _:
            return str(layer.path)
