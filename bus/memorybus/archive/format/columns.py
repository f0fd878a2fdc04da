"""Arrow columns as Python values, without numpy and without a scalar object for each cell."""

from collections.abc import Callable, Iterator
from typing import Any, Literal


def numbers(column: Any, code: Literal["q", "i"]) -> list[int]:
    """Return a column of integers without nulls.

    Args:
        column: a `pyarrow.ChunkedArray`.
        code: of `memoryview.cast`: ``q`` for 64 bits, ``i`` for 32.
    """
    found: list[int] = []
    for chunk in column.chunks:
        data = memoryview(chunk.buffers()[1]).cast(code)
        found += data[chunk.offset : chunk.offset + len(chunk)].tolist()
    return found


class Cells:
    """A column of texts or bytes, cut where it lies: copies would fill the processor's cache.

    A null is empty.

    Args:
        column: a `pyarrow.ChunkedArray`.
        whole: what the column's memory is looked at as: `memoryview`, or `ascii_text`.
    """

    def __init__(self, column: Any, whole: Callable[[Any], Any]) -> None:
        """Take the column's memory; `pyarrow` keeps it for as long as a view is there."""
        chunk = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        _, offsets, data = chunk.buffers()
        self._whole = whole(data or b"")
        self._offsets = memoryview(offsets).cast("i")[chunk.offset :].tolist()
        self._count = len(chunk)

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def __getitem__(self, row: int) -> Any:
        """Return one: a text, or a view that is good for as long as it is looked at."""
        if not 0 <= row < self._count:
            raise IndexError(row)
        return self._whole[self._offsets[row] : self._offsets[row + 1]]

    def some(self, rows: range) -> Iterator[Any]:
        """Yield neighbouring ones, as `__getitem__` returns them."""
        first, last = rows.start, rows.stop
        cuts = map(slice, self._offsets[first:last], self._offsets[first + 1 : last + 1])
        return map(self._whole.__getitem__, cuts)


def ascii_text(data: Any) -> str:
    """Return memory as one text; what is not ASCII becomes a mark for each byte."""
    return str(data, "ascii", "replace")


def hex_ids(column: Any) -> list[str]:
    """Return a column of 16-byte ids as hex digits."""
    found: list[str] = []
    for chunk in column.chunks:
        text = memoryview(chunk.storage.buffers()[1]).hex()
        first = chunk.offset * 32
        found += [text[at : at + 32] for at in range(first, first + len(chunk) * 32, 32)]
    return found


def words(column: Any) -> tuple[list[str], list[int]]:
    """Return a dictionary column without nulls: its words, and the number of each row's.

    A word stands more than once if the column's chunks do not share a dictionary.
    """
    known: list[str] = []
    found: list[int] = []
    for chunk in column.chunks:
        start = len(known)
        known += texts_of(chunk.dictionary)
        indices = chunk.indices
        code: Literal["i", "q"] = "i" if indices.type.bit_width == 32 else "q"
        data = memoryview(indices.buffers()[1]).cast(code)
        part = data[indices.offset : indices.offset + len(indices)].tolist()
        found += [start + index for index in part] if start else part
    return known, found


def texts_of(array: Any) -> list[str]:
    """Return an array of few texts."""
    return [str(value) for value in array.to_pylist()]
