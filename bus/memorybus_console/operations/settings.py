"""Lists each setting with its meaning, its value and the origin of the value."""

import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from textwrap import wrap
from typing import Annotated, Any, get_type_hints

import msgspec
from memorybus.config.parsing import PREFIX, convert_settings, format_value
from memorybus.config.settings import FIELDS, FILE_NAME, CallLimits, Layer, Settings
from memorybus.events import Scope
from memorybus.text.redact import masked

from memorybus_console.result import HIDDEN, TEXT, Column, Result

_ENTRY = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)


class EffectiveSetting(msgspec.Struct, frozen=True):
    """A setting with its present value.

    Attributes:
        value: its value, as it would be written in the environment; credentials are masked.
        origin: ``default``, a file, a variable or an option.
        unit: the unit of its value; "" if that has none.
    """

    name: Annotated[str, Column(title="setting")]
    value: Annotated[str, TEXT]
    unit: str
    origin: Annotated[str, TEXT]
    meaning: Annotated[str, TEXT]


def meanings(kind: type) -> dict[str, str]:
    """Return a sentence on each field of a type, as its docstring has it."""
    entries = _ENTRY.findall(cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2])
    texts = {name: " ".join(text.replace("``", "`").split()) for name, text in entries}
    return {name: text[:1].upper() + text[1:] for name, text in texts.items()}


MEANINGS: Mapping[str, str] = meanings(Settings)


def scope_of(settings: Settings) -> Scope:
    """Return whose memories the settings name, for what a command or a file leaves open."""
    return Scope(agent=settings.agent, user=settings.user, workspace=settings.workspace)


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
    settings, units = convert_settings(values, Settings), _units(Settings)
    return [
        EffectiveSetting(
            name=name,
            value=masked(format_value(getattr(settings, name)), settings.secrets),
            unit=units[name],
            origin=origins.get(name, "default"),
            meaning=MEANINGS.get(name, ""),
        )
        for name in FIELDS
    ]


def _units(kind: type) -> dict[str, str]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: next(filter(_is_text, getattr(hint, "__metadata__", ())), "")
        for name, hint in hints.items()
    }


def _is_text(annotation: object) -> bool:
    return isinstance(annotation, str)


def _describe_origin(layer: Layer, name: str) -> str:
    match layer.kind:
        case "environment":
            return PREFIX + name.upper()
        case "argument":
            return "--" + name.replace("_", "-")
        case _:
            return str(layer.path)


class DocumentedSetting(msgspec.Struct, frozen=True):
    """A setting as the reference describes it.

    Attributes:
        name: its name; `provider.NAME.` begins those of an instance's table.
        unit: the unit of its value; "" if that has none.
    """

    name: str
    default: Any
    unit: str
    meaning: str


class Reference(Result, frozen=True):
    """All settings with their defaults."""

    settings: Annotated[list[DocumentedSetting], HIDDEN]

    def headline(self) -> str:
        """Return a settings file in which every setting is a comment."""
        return "\n\n".join(map(_entry, self.settings))


def reference() -> Reference:
    """Return what is known of every setting; the limits of calls stand in an instance's table."""
    return Reference(
        [
            *(setting for setting in documented(Settings()) if setting.name != "provider"),
            *documented(CallLimits(), "provider.NAME."),
        ]
    )


def documented(defaults: Settings | CallLimits, table: str = "") -> list[DocumentedSetting]:
    """Return what is known of each field of a struct, whose names begin with `table`."""
    kind = type(defaults)
    units, texts = _units(kind), meanings(kind)
    return [
        DocumentedSetting(
            table + name,
            msgspec.to_builtins(getattr(defaults, name), enc_hook=str),
            units[name],
            texts.get(name, ""),
        )
        for name in kind.__struct_fields__
    ]


def _entry(setting: DocumentedSetting) -> str:
    """Return a setting as comments: its meaning, then what to write (JSON's values are TOML's)."""
    lines = wrap(
        setting.meaning, 98, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    unit = f"  # {setting.unit}" if setting.unit else ""
    default, name = setting.default, setting.name
    values = default if isinstance(default, dict) else {}
    # JSON's objects are not TOML's tables: each of their values gets a line of its own.
    rows = {f"{name}.{key}": value for key, value in values.items()} or {name: default}
    for key, value in rows.items():
        lines.append(f"#{key} = {msgspec.json.encode(value).decode()}{unit}")
    return "\n".join(lines)


class PageToken(Result, frozen=True):
    """A token for the page.

    Attributes:
        token: the token; null if the caller chose it.
    """

    token: str | None
    page_token: str

    def headline(self) -> str:
        """Return the token, and what to write into the settings."""
        token = f"the token, shown this once: {self.token}\n" if self.token else ""
        return f'{token}for {FILE_NAME}:\npage_token = "{self.page_token}"'
