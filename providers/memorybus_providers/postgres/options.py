"""The options of an instance; imports no driver."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from memorybus.errors import ConfigError

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.options import SCHEMA as OF_MEANING
from memorybus_providers.embedding.options import MeaningOptions, options_of
from memorybus_providers.remote.options import environment_value

_OWN: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "key": "url",
        "description": "where the server is, as libpq takes it, without a password",
        "default": "",
        "hint": "postgresql://memorybus@db.example/memory",
    },
    {
        "key": "password_env",
        "description": "the name of the environment variable that holds the password; without "
        "one libpq looks into ~/.pgpass (0600)",
        "default": "",
        "secret": True,
    },
    {
        "key": "schema",
        "description": "the schema that holds the tables; it is made if it is missing",
        "default": "memorybus",
    },
    {
        "key": "reader",
        "description": "a role to which recalls change, of which the worker's is a member: it "
        "reads the rows of the scope asked for, and nothing else",
        "default": "",
    },
    {
        "key": "memory_rows",
        "description": "whether the agent's two stores are kept as rows of memory_rows, too, for "
        "providers of the two-method contract",
        "default": False,
    },
)

SCHEMA: Final = (*_OWN, *OF_MEANING)
"""All options: ours, and those of search by meaning."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Where(msgspec.Struct, frozen=True):
    """Where an instance's tables are.

    Attributes:
        url: the connection string (a URI or ``key=value`` pairs); libpq adds what is missing.
        schema: the schema of the tables.
        password: the password for the server; empty to let libpq find it.
        reader: the role to which recalls change; empty for none.
    """

    url: str
    schema: str
    password: str = ""
    reader: str = ""

    def __repr__(self) -> str:
        """Show only the schema: the other fields may contain a password."""
        return f"Where(schema={self.schema!r})"


def meaning_options(config: ProviderConfig) -> MeaningOptions:
    """Return an instance's options for search by meaning.

    Raises:
        ConfigError: an option has the wrong type or is out of bounds.
    """
    given = {name: value for name, value in config.options.items() if name.startswith("embedder")}
    return options_of(msgspec.structs.replace(config, options=given))


def read_where(config: ProviderConfig) -> Where:
    """Return where an instance's tables are.

    Raises:
        ConfigError: a value cannot be right. The message does not repeat it: a URL may contain a
            password.
    """
    who = f"provider {config.name}"
    url, _, schema, reader = (_text(config, option) for option in _OWN[:4])
    if reader and not _NAME.fullmatch(reader):
        raise ConfigError(f"{who}: reader must be a plain name, as schema")
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise ConfigError(
            f"{who}: schema must be a plain name: lower-case letters, digits, _ (at most 63)"
        )
    return Where(url, schema, environment_value("password_env", config), reader)


def keeps_rows(config: ProviderConfig) -> bool:
    """Return whether the option ``memory_rows`` is set.

    Raises:
        ConfigError: the option is neither true nor false.
    """
    found = config.options.get("memory_rows", False)
    if not isinstance(found, bool):
        raise ConfigError(f"provider {config.name}: memory_rows must be true or false")
    return found


def _text(config: ProviderConfig, option: Mapping[str, Any]) -> str:
    value = config.options.get(option["key"], option["default"])
    if not isinstance(value, str):
        raise ConfigError(f"provider {config.name}: {option['key']} must be a text")
    return value
