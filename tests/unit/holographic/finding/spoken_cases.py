"""Questions in many languages: each with the memory that answers it, and one that does not.

They are in `spoken_cases.txt`, below the name of their language. The other memory shares the
question's common words. All sentences are our own.
"""

from pathlib import Path
from typing import Final

import msgspec

_TEXT = (Path(__file__).parent / "spoken_cases.txt").read_text(encoding="utf-8")


class Case(msgspec.Struct, frozen=True):
    """A question, its answer, and a memory that shares the question's common words."""

    asked: str
    right: str
    other: str


def _cases(language: str) -> tuple[str, tuple[Case, ...]]:
    name, *lines = language.strip().splitlines()
    return name, tuple(Case(*line.split(" | ")) for line in lines)


SPOKEN: Final = dict(_cases(language) for language in _TEXT.split("# ")[1:])
"""By language."""
