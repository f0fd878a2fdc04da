"""Tables in a temporary file, by which events are found, so that memory use stays flat."""

import sqlite3
from typing import Self


class ScratchIndex:
    """An index that exists until it is closed. Use it from one thread, in a `with` block."""

    def __init__(self, schema: str) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(f"pragma journal_mode = off; pragma synchronous = off; {schema}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
