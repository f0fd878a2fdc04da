"""Finds the facts of a scope that are nearest to a vector; it compares every one exactly.

The matrices of the scopes that were searched last stay in memory. A search reads only the vectors
that are new, and reads all vectors of a scope again only after one was removed from it.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memorybus_providers.embedding.embedder import Vector, Vectors
from memorybus_providers.embedding.vectors import MAX_COMPARED, MAX_NEAREST, Model
from memorybus_providers.finding.meaning_comparison import near_by_cosine
from memorybus_providers.holographic.meaning.tables import STORED_TYPE
from memorybus_providers.ranking.facts import SearchPool
from memorybus_providers.ranking.nearness import Near

MAX_KEPT_BYTES = 1 << 28
"""The most bytes of matrices in memory (G10); the scope searched last stays, however large."""

_MAX_BLOCKS = 16  # the most pieces of a scope's matrix; with one more, all are joined into one

_COUNTS = "select filled, removed from meaning_scopes where scope = ?"
_ROWS = """
select meaning_vectors.id, fact, kind = 'answer', vector
from meaning_vectors join facts on facts.id = fact
where meaning_vectors.scope = ? and meaning_vectors.id > ? order by meaning_vectors.id
"""


class _Block(msgspec.Struct, frozen=True):
    """Some facts, whether each belongs to a long answer, and their vectors, row by row."""

    facts: NDArray[np.int64]
    answers: NDArray[np.bool_]
    vectors: Vectors


class _Scope(msgspec.Struct):
    """The vectors of a scope that are in memory, and the scope's counts when they were read."""

    counts: tuple[int, int] = (0, 0)
    last: int = 0
    blocks: list[_Block] = []

    @property
    def size(self) -> int:
        """How many bytes its vectors have."""
        return sum(block.vectors.nbytes for block in self.blocks)


class SqliteComparison:
    """Facts and their cosines with the question; see `MeaningComparison`.

    Args:
        model: the model that made the vectors.
        facts: the rows of the facts.
        answers: whether each belongs to a long answer.
    """

    def __init__(
        self,
        model: Model,
        facts: NDArray[np.int64],
        answers: NDArray[np.bool_],
        cosines: Vector,
    ) -> None:
        self._model = model
        self._facts = facts
        self._answers = answers
        self._cosines = cosines

    def nearest(self, pool: SearchPool) -> Sequence[int]:
        """Return the `MAX_NEAREST` facts of a pool, nearest first, the newest of equals."""
        asked = self._answers == (pool == "answers")
        facts, cosines = self._facts[asked], self._cosines[asked]
        if not len(facts):
            return []
        first = np.argpartition(-cosines, min(MAX_NEAREST, len(cosines)) - 1)[:MAX_NEAREST]
        order = np.lexsort((-facts[first], -cosines[first]))
        return [int(fact) for fact in facts[first][order]]

    def nearness(self, rows: Sequence[int]) -> Mapping[int, Near]:
        """Return how near the facts of these rows are, by row."""
        asked = np.isin(self._facts, rows)
        if not asked.any():
            return {}
        found = zip(self._facts[asked].tolist(), self._cosines[asked].tolist(), strict=True)
        usual = self._cosines[np.argsort(-self._facts)[:MAX_COMPARED]]
        spread = float(usual.mean()), float(usual.std())
        return near_by_cosine(self._model.nearness, dict(found), len(usual), *spread)


class VectorIndex:
    """The vectors of facts, in memory as far as they were searched; belongs to one connection.

    Args:
        db: the database, with the tables of `tables`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._scopes: OrderedDict[int, _Scope] = OrderedDict()

    def compare(self, scopes: Iterable[int], vector: Vector, model: Model) -> SqliteComparison:
        """Compare the facts of these scopes with a vector.

        Args:
            scopes: the rows of the scopes; vectors of other scopes are not read.
            vector: the vector of the question, of length one.
            model: the model that made the vectors.
        """
        blocks = [block for scope in scopes for block in self._read(scope)]
        facts = [block.facts for block in blocks]
        answers = [block.answers for block in blocks]
        cosines = [block.vectors @ vector for block in blocks]
        return SqliteComparison(
            model,
            np.concatenate([np.zeros(0, np.int64), *facts]),
            np.concatenate([np.zeros(0, np.bool_), *answers]),
            np.concatenate([np.zeros(0, np.float32), *cosines]),
        )

    def _read(self, scope: int) -> Sequence[_Block]:
        # The counts are read before the vectors: one that is written in between is read the next
        # time, and never missed.
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
        filled = [row[1:] for row in rows if row[-1]]
        if filled:
            facts, answers, vectors = zip(*filled, strict=True)
            matrix = np.frombuffer(b"".join(vectors), dtype=STORED_TYPE).reshape(len(facts), -1)
            known.blocks.append(
                _Block(np.array(facts), np.array(answers, np.bool_), matrix.astype(np.float32))
            )
        if len(known.blocks) > _MAX_BLOCKS:
            known.blocks = [_join_blocks(known.blocks)]

    def _bound(self) -> None:
        """Drop the matrices of the scopes that were searched longest ago."""
        size = sum(scope.size for scope in self._scopes.values())
        while size > MAX_KEPT_BYTES and len(self._scopes) > 1:
            _, oldest = self._scopes.popitem(last=False)
            size -= oldest.size


def _join_blocks(blocks: Sequence[_Block]) -> _Block:
    return _Block(
        np.concatenate([block.facts for block in blocks]),
        np.concatenate([block.answers for block in blocks]),
        np.concatenate([block.vectors for block in blocks]),
    )
