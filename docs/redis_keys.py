"""Writes ``docs/redis-keys.md`` from the code: ``python docs/redis_keys.py [--check]``."""

import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from memorybus.redis.key_table import TABLE
from pages import write_or_check

PAGE = Path(__file__).with_name("redis-keys.md")

HEAD = """# Redis keys

Made from the code by `make docs`; do not edit. `<ns>` is the setting `namespace` (default `mb`),
`{pNN}` the partition (`{p00}` to `{p15}` by default): all keys of a partition share this hash tag,
hence a slot of Redis Cluster. Keys marked *expires* have a time to live. RQ's own keys (`rq:…`)
stand beside these, on the Redis of `jobs_url`.

| key | type | lives | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_rows()) + "\n## Scripts\n\n" + "\n".join(_scripts())


def _rows() -> Iterator[str]:
    for doc in TABLE:
        lives = "stays" if doc.permanent else "expires"
        key = doc.template.replace("{ns}", "<ns>")
        yield f"| `{key}` | {doc.type} | {lives} | {doc.meaning} |\n"


def _scripts() -> Iterator[str]:
    scripts = Path(str(resources.files("memorybus.redis"))) / "lua"
    for script in sorted(scripts.rglob("*.lua")):
        name = script.relative_to(scripts)
        yield f"### {name}\n\n```\n{_header(script.read_text())}\n```\n"


def _header(source: str) -> str:
    lines = []
    for line in source.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" "))
    return "\n".join(lines)


def main() -> int:
    """Write the page, or say whether it is current."""
    return write_or_check(PAGE, page())


if __name__ == "__main__":
    sys.exit(main())
