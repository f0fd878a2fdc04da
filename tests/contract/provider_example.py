"""The example provider of docs/providers.md, as a module."""

import re
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"


def code_blocks(language: str = "python") -> list[str]:
    """Return the page's blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def example_module() -> ModuleType:
    """Return the first block, run as a module of its own."""
    module = ModuleType("my_notes")
    exec(compile(code_blocks()[0], str(PAGE), "exec"), module.__dict__)
    return module
