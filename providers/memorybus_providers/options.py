"""The options of an instance: a struct that is read from its table, and shown to people."""

from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from memorybus.errors import ConfigError
from memorybus.msgspec_types import prepared

from memorybus_providers.base import ProviderConfig


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every struct of options inherits; an option that it has no field for is refused."""

    def __repr__(self) -> str:
        """Show no value: credentials may be among them."""
        return f"{type(self).__name__}(…)"

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {}


T = TypeVar("T", bound=Options)


def read_options(config: ProviderConfig, kind: type[T]) -> T:
    """Return an instance's options as a struct of type `kind`.

    Raises:
        ConfigError: an option is unknown or missing, has the wrong type, or breaks a rule. No
            value is repeated: it may contain a password.
    """
    try:
        options = msgspec.convert(dict(config.options), prepared(kind))
    except msgspec.ValidationError as error:
        raise ConfigError(f"provider {config.name}: {error}") from error
    if broken := [rule for rule, kept in options.rules().items() if not kept]:
        raise ConfigError(f"provider {config.name}: {'; '.join(broken)}")
    return options


def option_rows(options: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Return what `MemoryProvider.get_config_schema` returns for a struct of options.

    A field's `msgspec.Meta` has its description, and other keys of its row as ``extra``.
    """
    hints = get_type_hints(options, include_extras=True)
    return [_option_row(field, hints[field.name]) for field in msgspec.structs.fields(options)]


def _option_row(field: msgspec.structs.FieldInfo, hint: Any) -> dict[str, Any]:
    kind, *metas = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    meta = metas[0] if metas else msgspec.Meta()
    row: dict[str, Any] = {"key": field.name, "description": meta.description or ""}
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    row |= {"required": True} if field.required else {"default": default}
    if get_origin(kind) is Literal:
        row["choices"] = get_args(kind)
    return row | (meta.extra or {})
