"""The options of an instance; imports no driver."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorybus_providers.base import ProviderConfig
from memorybus_providers.embedding.options import MeaningOptions
from memorybus_providers.options import option_rows
from memorybus_providers.remote.options import environment_value

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


_Url = Annotated[
    str,
    Meta(
        description="where the server is, as libpq takes it, without a password",
        extra={"hint": "postgresql://memorybus@db.example/memory"},
    ),
]
_PasswordEnv = Annotated[
    str,
    Meta(
        description="the name of the environment variable that holds the password; without "
        "one libpq looks into ~/.pgpass (0600)",
        extra={"secret": True},
    ),
]
_Schema = Annotated[
    str, Meta(description="the schema that holds the tables; it is made if it is missing")
]
_Reader = Annotated[
    str,
    Meta(
        description="a role to which recalls change, of which the worker's is a member: it "
        "reads the rows of the scope asked for, and nothing else"
    ),
]
_MemoryRows = Annotated[
    bool,
    Meta(
        description="whether the agent's two stores are kept as rows of memory_rows, too, for "
        "providers of the two-method contract"
    ),
]


class PostgresOptions(MeaningOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options: where the tables are, and those of search by meaning."""

    url: _Url = ""
    password_env: _PasswordEnv = ""
    schema: _Schema = "memorybus"
    reader: _Reader = ""
    memory_rows: _MemoryRows = False

    def rules(self) -> dict[str, bool]:
        """Return the rules for the options, each with whether it is kept."""
        return {
            **MeaningOptions.rules(self),
            "reader must be a plain name, as schema": not self.reader
            or bool(_NAME.fullmatch(self.reader)),
            "schema must be a plain name: lower-case letters, digits, _ (at most 63)": bool(
                _NAME.fullmatch(self.schema)
            )
            and not self.schema.startswith("pg_"),
        }


def schema_rows() -> list[Mapping[str, Any]]:
    """Return the options as they are shown to people: where the tables are comes first."""
    of_meaning = MeaningOptions.__struct_fields__
    return sorted(option_rows(PostgresOptions), key=lambda row: row["key"] in of_meaning)


class Where(msgspec.Struct, frozen=True):
    """Where an instance's tables are."""

    url: str  # the connection string (a URI or ``key=value`` pairs); libpq adds what is missing
    schema: str  # the schema of the tables
    password: str = ""  # the password for the server; empty to let libpq find it
    reader: str = ""  # the role to which recalls change; empty for none

    def __repr__(self) -> str:
        """Show only the schema: the other fields may contain a password."""
        return f"Where(schema={self.schema!r})"


def where_of(config: ProviderConfig, options: PostgresOptions) -> Where:
    """Return where an instance's tables are.

    Raises:
        ConfigError: the environment variable of the password is not set.
    """
    password = environment_value("password_env", config)
    return Where(options.url, options.schema, password, options.reader)
