"""Search by meaning in one large scope: pgvector's graph (HNSW) beside a comparison of all.

``python bench/stores/postgres_graph.py [--facts N]``. Vectors of 384 numbers in clusters, as texts
have them, half of them one person's and the rest of a thousand others. They are written past the
provider, and searched by its own statement (`meaning.tables.Comparison`): alone, then with the
graph switched off. Prints a line of JSON: milliseconds, and the share of the exact answer that was
found.
"""

import argparse
import json
import struct
import sys
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import psycopg
from gauge import p50, p99
from memorybus_providers.embedding.embedder import Vectors
from memorybus_providers.embedding.vectors import Model
from memorybus_providers.postgres.link import Link
from memorybus_providers.postgres.meaning.tables import PostgresComparison, PostgresVectorTables
from memorybus_providers.postgres.migrations import migrate
from memorybus_providers.postgres.options import Where
from numpy.typing import NDArray

from stores.postgres_store import server

_SIZE, _CLUSTERS, _OTHERS, _QUESTIONS, _SEED = 384, 500, 1_000, 100, 7
_MODEL: Final = Model("bench", _SIZE, 0.0)

_FACTS = """
insert into facts select n, case when n <= %(own)s then 1 else 2 + n %% %(others)s end, 1, n, '',
    '', 0, 'user', '', '', '', '' from generate_series(1, %(count)s) n
"""
_BUILD = (
    "create index meaning_vectors_near on meaning_vectors using hnsw (vector halfvec_cosine_ops)"
)


def measure(count: int) -> dict[str, float]:
    """Return the figures for so many facts."""
    chance = np.random.default_rng(_SEED)
    centres = chance.normal(size=(_CLUSTERS, _SIZE))
    vectors = _drawn(chance, centres, count)
    asked = _drawn(chance, centres, _QUESTIONS)
    with server() as url:
        where = Where(url, "memorybus")
        migrate(where)
        tables = PostgresVectorTables(Link(where), where)
        tables.prepare()
        tables.name_model(_MODEL)
        built = _written(url, vectors)
        graph, times = _answers(where, asked, exact=False)
        exact, slow = _answers(where, asked, exact=True)
    shares = [len(a & b) / len(b) for a, b in zip(graph, exact, strict=True)]
    return {
        "facts": count,
        "own": count // 2,
        "build_s": round(built, 1),
        "graph_p50_ms": round(p50(times) * 1e3, 2),
        "graph_p99_ms": round(p99(times) * 1e3, 2),
        "exact_p50_ms": round(p50(slow) * 1e3, 2),
        "found_of_exact": round(sum(shares) / len(shares), 3),
    }


def _drawn(chance: np.random.Generator, centres: NDArray[np.float64], count: int) -> Vectors:
    """Return vectors of length 1 near the centres."""
    found = centres[chance.integers(len(centres), size=count)]
    found = found + 0.7 * chance.normal(size=found.shape)
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def _written(url: str, vectors: Vectors) -> float:
    """Write facts and vectors, then build the graph; return the seconds of that."""
    given = {"own": len(vectors) // 2, "others": _OTHERS, "count": len(vectors)}
    with psycopg.connect(url, options="-c search_path=memorybus,public", autocommit=True) as db:
        db.execute("set maintenance_work_mem = '512MB'")
        db.execute("drop index meaning_vectors_near")
        db.execute(_FACTS, given)
        db.execute("truncate meaning_missing")
        with db.cursor().copy("copy meaning_vectors from stdin (format binary)") as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
            for at, vector in enumerate(vectors, 1):
                scope = 1 if at <= given["own"] else 2 + at % _OTHERS
                body = struct.pack("!HH", _SIZE, 0) + vector.astype(">f2").tobytes()
                copy.write(struct.pack("!hiqiqi", 3, 8, at, 8, scope, len(body)) + body)
            copy.write(struct.pack("!h", -1))
        began = time.perf_counter()
        db.execute(_BUILD)
        spent = time.perf_counter() - began
        db.execute("analyze")
    return spent


def _answers(where: Where, asked: Vectors, *, exact: bool) -> tuple[list[set[int]], list[float]]:
    """Return the facts nearest to each question, and the seconds of each."""
    link, found, times = Link(where), [], []
    for vector in asked:
        with link.transaction(60.0, reading=True) as db:
            if exact:
                db.execute("set local enable_indexscan = off")
            began = time.perf_counter()
            near = PostgresComparison(db, [1], vector, _MODEL).nearest("talk")
            times.append(time.perf_counter() - began)
        found.append(set(near))
    link.close()
    return found, times


def main() -> None:
    """Run it."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--facts", type=int, default=100_000)
    print(json.dumps(measure(words.parse_args().facts)))


if __name__ == "__main__":
    main()
