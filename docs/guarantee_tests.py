"""Fills the test lists of ``docs/guarantees.md``: ``python docs/guarantee_tests.py [--check]``.

A test holds a guarantee if its docstring names it (G1 to G10).
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).with_name("guarantees.md")
MARK = re.compile(r"<!-- tests (G\d+) -->\n.*?<!-- end -->", re.DOTALL)


def held() -> dict[str, dict[str, list[str]]]:
    """Return the tests by guarantee and file."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, doc in _tests(path):
            for guarantee in sorted(set(re.findall(r"\bG(?:10|[1-9])\b", doc))):
                found[guarantee][str(path.relative_to(ROOT))].append(name)
    return found


def _tests(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def filled(page: str) -> str:
    """Return the page with its lists written anew."""
    tests = held()

    def fill(mark: re.Match[str]) -> str:
        guarantee = mark.group(1)
        files = tests.get(guarantee, {})
        lines = [f"- `{file}`: {', '.join(sorted(names))}" for file, names in files.items()]
        count = sum(map(len, files.values()))
        if not lines:
            return f"<!-- tests {guarantee} -->\nNo tests yet.\n<!-- end -->"
        body = "\n".join(lines)
        return (
            f"<!-- tests {guarantee} -->\n<details><summary>{count} tests</summary>\n\n"
            f"{body}\n\n</details>\n<!-- end -->"
        )

    return MARK.sub(fill, page)


def main() -> int:
    """Write the page, or say whether it is current."""
    page = PAGE.read_text()
    if "--check" not in sys.argv:
        PAGE.write_text(filled(page))
        return 0
    if page == filled(page):
        return 0
    sys.stderr.write("docs/guarantees.md is not current; run: make docs\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
