"""Arrow columns as Python values, without numpy and without a scalar object for each cell."""

from collections.abc import Callable, Iterator
from typing import Any, Literal


def integers_of(column: Any, code: Literal["q", "i"]) -> list[int]:
    """Return a column of integers without nulls; `code` is the format for `memoryview.cast`."""
    found: list[int] = []
    for chunk in column.chunks:
        data = memoryview(chunk.buffers()[1]).cast(code)
        found += data[chunk.offset : chunk.offset + len(chunk)].tolist()
    return found


class Cells:
    """A column of texts or bytes, sliced without copying; a null is an empty value."""

    def __init__(self, column: Any, whole: Callable[[Any], Any]) -> None:
        chunk = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        _, offsets, data = chunk.buffers()
        self._whole = whole(data or b"")
        self._offsets = memoryview(offsets).cast("i")[chunk.offset :].tolist()
        self._count = len(chunk)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> Any:
        """Return one cell: a text, or a view of the column's memory."""
        if not 0 <= row < self._count:
            raise IndexError(row)
        return self._whole[self._offsets[row] : self._offsets[row + 1]]

    def cells_in(self, rows: range) -> Iterator[Any]:
        """Yield the cells of a range of rows, as `__getitem__` returns them."""
        first, last = rows.start, rows.stop
        cuts = map(slice, self._offsets[first:last], self._offsets[first + 1 : last + 1])
        return map(self._whole.__getitem__, cuts)


def ascii_text(data: Any) -> str:
    """Return memory as one text; each byte that is not ASCII becomes a replacement character."""
    return str(data, "ascii", "replace")


def hex_ids(column: Any) -> list[str]:
    found: list[str] = []
    for chunk in column.chunks:
        text = memoryview(chunk.storage.buffers()[1]).hex()
        first = chunk.offset * 32
        found += [text[at : at + 32] for at in range(first, first + len(chunk) * 32, 32)]
    return found


def dictionary_of(column: Any) -> tuple[list[str], list[int]]:
    """Return a dictionary column's words, which may repeat, and for each row a word's index."""
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
    return [str(value) for value in array.to_pylist()]
