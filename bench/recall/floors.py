"""The simplest things that could work, which recall is compared with: plain BM25 over pieces.

Lines of some 400 characters are ranked by their words (lower case, no stemmer, no stop words), and
the best ones fill the block. Whatever a store does must be worth more than this.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

K1 = 1.5
B = 0.75
"""BM25's usual saturation of repeated words, and weight of length."""

PIECE_CHARS = 400

_WORD = re.compile(r"\w+")
_BREAK = re.compile(r"\n+|(?<=[.!?])\s+|(?<=\S)\s+")


class Piece(msgspec.Struct, frozen=True):
    """A piece of an utterance: its text, and how often each word stands in it."""

    text: str
    words: Counter[str]


class Bm25:
    """Ranks the pieces of some texts for a question."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Cut the texts, and count their words."""
        self._pieces = [Piece(cut, _words(cut)) for text in texts for cut in _pieces(text)]
        self._spread = Counter(word for piece in self._pieces for word in piece.words)
        sizes = [piece.words.total() for piece in self._pieces]
        self._mean = sum(sizes) / max(1, len(sizes))

    def best(self, question: str, budget: int) -> list[str]:
        """Return the best pieces that fill `budget` characters."""
        scored = ((self._score(_words(question), piece), piece.text) for piece in self._pieces)
        ranked = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
        taken: list[str] = []
        for _, text in ranked:
            if sum(map(len, taken)) >= budget:
                break
            taken.append(text)
        return taken

    def _score(self, asked: Iterable[str], piece: Piece) -> float:
        damping = K1 * (1 - B + B * piece.words.total() / self._mean)
        return sum(
            self._rarity(word) * count * (K1 + 1) / (count + damping)
            for word in asked
            if (count := piece.words[word])
        )

    def _rarity(self, word: str) -> float:
        having = self._spread[word]
        return math.log(1 + (len(self._pieces) - having + 0.5) / (having + 0.5))


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _pieces(text: str) -> Sequence[str]:
    """Cut a text at its last space, sentence or line before each `PIECE_CHARS` characters."""
    pieces = []
    while len(text) > PIECE_CHARS:
        ends = [hit.start() for hit in _BREAK.finditer(text, 0, PIECE_CHARS)]
        end = ends[-1] if ends else PIECE_CHARS
        pieces.append(text[:end])
        text = text[end:].lstrip()
    return [piece for piece in (*pieces, text) if piece.strip()]
