"""Each guarantee names tests that exist and that name the guarantee."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
RULE = re.compile(r'def (test_\w+)\([^)]*\):\n\s+"""(.*?)"""', re.DOTALL)
PAGE = (ROOT / "docs/guarantees.md").read_text()


def docstrings() -> dict[str, str]:
    """Return the docstring of every test by its name."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return {name: rule for text in texts for name, rule in RULE.findall(text)}


def test_a_guarantee_names_three_tests_that_show_it():
    """A reader of a guarantee finds tests whose docstrings name it."""
    rules = docstrings()
    for number in range(1, 11):
        section = PAGE.split(f"\n## G{number} ")[1].split("\n## ")[0]
        named = re.findall(r"`(test_\w+)`", section)
        assert len(named) >= 3
        assert [name for name in named if not re.search(rf"\bG{number}\b", rules[name])] == []
