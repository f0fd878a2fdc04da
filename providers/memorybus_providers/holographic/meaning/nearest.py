"""The facts of a scope that are nearest to a vector: every one is compared, exactly.

Matrices of the scopes that were asked last stay in memory and grow with their scopes: an answer
reads what is new, and reads a scope anew only after something was removed from it.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memorybus_providers.embedding.embedder import Vector, Vectors
from memorybus_providers.embedding.floor import Chance
from memorybus_providers.embedding.vectors import Near
from memorybus_providers.holographic.meaning.tables import STORED

KEPT_BYTES = 1 << 28
"""Matrices kept in memory (G10); the scope that was asked last stays, however large."""

_BLOCKS = 16
"""Pieces of a scope's matrix; more are put together."""

_COUNTS = "select filled, removed from meaning_scopes where scope = ?"
_ROWS = """
select id, fact, vector from meaning_vectors where scope = ? and id > ? order by id
"""


class _Block(msgspec.Struct, frozen=True):
    """Some facts and their vectors, row by row."""

    facts: NDArray[np.int64]
    vectors: Vectors


class _Scope(msgspec.Struct):
    """What is in memory of a scope, and how it stood when that was read."""

    counts: tuple[int, int] = (0, 0)
    last: int = 0
    blocks: list[_Block] = []

    @property
    def size(self) -> int:
        """Bytes of its vectors."""
        return sum(block.vectors.nbytes for block in self.blocks)


class Nearest:
    """Compares vectors; belongs to one connection.

    Args:
        db: the database, with the tables of `tables`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        """Have read nothing yet."""
        self._db = db
        self._scopes: OrderedDict[int, _Scope] = OrderedDict()

    def find_nearest(
        self, scopes: Iterable[int], vector: Vector, chance: Chance, most: int
    ) -> list[Near]:
        """Return the nearest facts of some scopes, nearest first.

        Args:
            scopes: their rows; no vector of any other is looked at.
            vector: what is asked, of length one.
            chance: only facts that are nearer than by chance.
            most: how many at most.
        """
        blocks = [block for scope in scopes for block in self._read(scope)]
        floor = chance.floor(sum(len(block.facts) for block in blocks))
        found = [near for block in blocks for near in _near(block, vector, floor, most)]
        return sorted(found, key=lambda near: (-near.cosine, -near.fact))[:most]

    def _read(self, scope: int) -> Sequence[_Block]:
        # The counts first: what comes after them is read again, never missed.
        counts = self._db.execute(_COUNTS, (scope,)).fetchone() or (0, 0)
        known = self._scopes.pop(scope, None)
        if known is None or known.counts[1] != counts[1]:
            known = _Scope()
        if known.counts != counts:
            self._grow(scope, known)
            known.counts = counts
        self._scopes[scope] = known
        self._bound()
        return known.blocks

    def _grow(self, scope: int, known: _Scope) -> None:
        rows = self._db.execute(_ROWS, (scope, known.last)).fetchall()
        if rows:
            known.last = rows[-1][0]
        filled = [(fact, vector) for _, fact, vector in rows if vector]
        if filled:
            facts, vectors = zip(*filled, strict=True)
            matrix = np.frombuffer(b"".join(vectors), dtype=STORED).reshape(len(facts), -1)
            known.blocks.append(_Block(np.array(facts), matrix.astype(np.float32)))
        if len(known.blocks) > _BLOCKS:
            known.blocks = [_join_blocks(known.blocks)]

    def _bound(self) -> None:
        """Forget the scopes that were asked longest ago."""
        size = sum(one.size for one in self._scopes.values())
        while size > KEPT_BYTES and len(self._scopes) > 1:
            _, oldest = self._scopes.popitem(last=False)
            size -= oldest.size


def _near(block: _Block, vector: Vector, floor: float, most: int) -> Iterator[Near]:
    cosines = block.vectors @ vector
    (above,) = np.nonzero(cosines > floor)
    if len(above) > most:
        above = above[np.argpartition(-cosines[above], most)[:most]]
    for row in above:
        yield Near(int(block.facts[row]), float(cosines[row]), floor)


def _join_blocks(blocks: Sequence[_Block]) -> _Block:
    return _Block(
        np.concatenate([block.facts for block in blocks]),
        np.concatenate([block.vectors for block in blocks]),
    )
