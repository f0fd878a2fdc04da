"""Bounds tables: beyond a number of entries the oldest are removed (G10)."""

from collections import OrderedDict
from typing import Any


def drop_oldest(table: OrderedDict[Any, Any], most: int) -> None:
    """Remove the first entries of a table until it has `most` of them."""
    while len(table) > most:
        table.popitem(last=False)
