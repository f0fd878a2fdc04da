"""Write what commands print with ``--json`` into its page: ``python docs/cli_page.py [--check]``.

``docs/cli.schema.json`` is for programs, ``docs/cli.md`` for people. Both are made of the types in
``memorybus.surfaces.cli.results``, and the tests of ``tests/integration/surfaces/cli`` hold what
commands really print to the schema.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memorybus.surfaces.cli.results import RESULTS, schema
from pages import write_or_check

PAGE = Path(__file__).with_name("cli.md")
SCHEMA = Path(__file__).with_name("cli.schema.json")

HEAD = """# What commands print as JSON

Every command but `top` takes `--json`. Its result is one JSON value on stdout, and all else is on
stderr; where the table says *lines*, it is a value on each line. A command that fails prints a
[`Failed`](#failed), on one line, and its exit code says so. Times are ISO 8601 in UTC where a field
is a text, else milliseconds since the Unix epoch. As JSON Schema, for programs:
[cli.schema.json](cli.schema.json). `make docs` writes both from the code.

| command | prints |
|---|---|
"""

_FIELD = re.compile(r"^    (\w[\w, ]*): (.*)$")


def page(whole: Mapping[str, Any]) -> str:
    """Return the page of a schema."""
    rows = "".join(
        f"| `memorybus {name}` | {shown(kind)}{_lines(name)} |\n"
        for name, kind in whole["commands"].items()
    )
    types = "".join(part for name, one in whole["$defs"].items() for part in _type(name, one))
    return f"{HEAD}{rows}\n## Types\n{types}"


def _lines(command: str) -> str:
    return ", lines" if RESULTS[command].lines else ""


def shown(kind: Mapping[str, Any]) -> str:
    """Return a schema as a few words, with links to types."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in kind:
        return " or ".join(shown(one) for one in kind["anyOf"])
    if "enum" in kind:
        return ", ".join(f"`{json.dumps(one)}`" for one in kind["enum"])
    inner = kind.get("items") or kind.get("additionalProperties")
    what = kind.get("type", "anything")
    return f"{'list' if what == 'array' else what} of {shown(inner)}" if inner else what


def _type(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    summary, meanings = described(one.get("description", ""))
    yield f"\n### {name}\n\n{summary}\n"
    fields = one.get("properties", {})
    if fields:
        yield "\n| field | is | |\n|---|---|---|\n"
    for field, kind in fields.items():
        yield f"| `{field}` | {shown(kind)} | {cell(meanings.get(field, ''))} |\n"


def described(docstring: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says in all, and of each field."""
    summary, _, fields = docstring.partition("Attributes:\n")
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in fields.splitlines():
        text = line.removeprefix("    ")
        found = _FIELD.match(text)
        if found:
            names = [name.strip() for name in found[1].split(",")]
            meanings |= dict.fromkeys(names, found[2])
        else:
            meanings |= {name: f"{meanings[name]} {text.strip()}".strip() for name in names}
    return " ".join(summary.split()), meanings


def cell(text: str) -> str:
    """Return a text that stands in a table's cell."""
    return text.replace("|", "\\|").strip()


if __name__ == "__main__":
    made = schema()
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    sys.exit(max(write_or_check(SCHEMA, text), write_or_check(PAGE, page(made))))
