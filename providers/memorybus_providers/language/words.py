"""Cuts texts of any script into the tokens of the index; pure.

A token is a word in lower case without diacritics. If the word has any, it follows in its written
form after `MARK`: ``cafe!café``. So both spellings are near each other in the index, and nothing
that a stemmer needs is lost. There are further tokens for

- identifiers: ``getUserToken`` is also ``get``, ``user``, ``token``; ``auth_service.py`` is its
  words and itself; ``E1234`` is also ``1234``; ``C++`` is also ``cplusplus``, ``C#`` ``csharp``,
  ``.NET`` ``dotnet``, and ``srv-17`` ``srv_17``;
- scripts without spaces: each pair of characters, and each Chinese character; in Thai and related
  scripts also each three characters;
- Korean: each pair of syllables, and the first syllable of each word;
- Hebrew words: each also without letters that may be a prefix.

The token of an Arabic word begins without its article and what is written together with it. In
texts that are not English, long words also have tokens for their beginnings and ends, each after a
`MARK`, so that parts of compounds are found. A token contains only letters, digits, marks of
scripts, `MARK` and ``_./``.
"""

import re
import string
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

MARK: Final = "!"
"""Separates a word without diacritics from its written form; sorts before letters and digits."""

MIN_COMPOUND = 10
MIN_PART = 4
_MAX_COMPOUND = 40
"""The fewest letters of a word that may be a compound, the fewest of a part of it, and the most
letters of such a word."""

WritingSystem = Literal["spaced", "han", "hangul", "thai"]
"""How the words of a script are cut: at spaces, or as described above."""

_ASCII = "".join(chr(sign) if chr(sign).isalnum() else " " for sign in range(128)).lower().encode()
_ASCII += bytes(128)
# Marks that belong to words in their scripts, but that Python does not count as parts of words.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u0900-\u0963\u0981-\u0dff\u0e31-\u0e3a"
    "\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
)
_WORD = re.compile(rf"[\w{_MARKS}]+")
_POSSESSOR = re.compile(rf"([\w{_MARKS}]+)(?:['\u2019]s\b)?")
_LOST = re.compile(
    "(?<!\u0438)\u0306|[\u0300-\u0305\u0307-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8]"
)
_LETTERS = str.maketrans(
    {
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th",
        "ı": "i", "ς": "σ", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه",
    }
)  # fmt: skip
_RUNS = re.compile(
    "(?P<han>[\u2e80-\u2fff\u3005-\u3007\u3021-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)"
    "|(?P<hangul>[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]+)"
    "|(?P<thai>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
    "|(?P<spaced>[^\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u318f"
    "\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_ARABIC = re.compile("^(?:و?(?:ال|بال|كال|فال|لل))(?=..)")
_HEBREW = re.compile("[\u05d0-\u05ea]{4,}")
_HEBREW_PREFIXES = "ובהכלמש"


def _seams() -> bytes:
    """Return for each ASCII character the sides of a seam of an identifier on which it may be.

    A seam is between a joint and a letter or digit (``_b``), a letter and a digit (``a0``), or a
    small and a capital letter (``aB``). The left side of each kind has a bit, and its right side
    has the next higher bit.
    """
    small, digits = string.ascii_lowercase, string.digits
    sides = {"_./": 1, small: 2 | 8 | 64, small.upper(): 2 | 8 | 128, digits: 2 | 16}
    signs = {ord(sign): bits for group, bits in sides.items() for sign in group}
    return bytes(signs.get(code, 0) for code in range(256))


_SEAMS = _seams()
_JOINED = re.compile(
    r"(?<![A-Za-z0-9_./])[A-Za-z0-9]{1,64}(?:[_./]{1,3}[A-Za-z0-9]{1,64}){1,16}(?<=.{3})"
)
_CAMEL = re.compile(r"(?<![A-Za-z])[A-Za-z]+[a-z][A-Z][A-Za-z]*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIGNED = re.compile(
    r"(?<![A-Za-z0-9_.])(?:[A-Za-z](?:\+\+|#)(?![A-Za-z0-9])|\.[A-Z]{2,8}(?![A-Za-z0-9])"
    r"|[A-Za-z]{1,16}-\d{1,8}(?![A-Za-z0-9]))"
)
_CAPITALS = re.compile(r"\b[A-Z]{2,3}\b")
_SIGN_NAMES = str.maketrans({"+": "plus", "#": "sharp", ".": "dot", "-": "_"})
_CODE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{1,8}(\d{3,})(?![A-Za-z0-9])")


def folded(text: str) -> str:
    """Return a text in lower case and without diacritics, as tokens are compared."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.lower()).lower()
    return unicodedata.normalize("NFC", _LOST.sub("", parts).translate(_LETTERS))


def folded_words(text: str) -> list[str]:
    """Return the words of a text between spaces and signs, folded, in order."""
    return re.findall(r"[^\W_]+", folded(text))


def tokens(text: str, *, signed: bool = True) -> list[str]:
    """Return the tokens of a text in order, with repetitions; see the module's docstring.

    Args:
        signed: whether names with signs ("C++", "srv-17") are looked for, which takes longer.
    """
    words = _words(text, _index_tokens)
    code = _may_hold_identifiers(text) or (
        signed and any(sign in text for sign in ("++", "#", " .", "-"))
    )
    return [*words, *identifiers(text)] if code else words


def whole_words(text: str) -> list[str]:
    """Return the words of a text, each as one token; in scripts without spaces each run is one."""
    return _words(text, _whole)


def identifiers(text: str) -> list[str]:
    """Return additional tokens for what looks like code: paths, names in code, error numbers."""
    humps = [part for name in _CAMEL.findall(text) for part in _HUMP.findall(name)]
    found = [*_JOINED.findall(text), *humps, *_CODE.findall(text)]
    found += [name.translate(_SIGN_NAMES) for name in _SIGNED.findall(text)]
    return [name.lower() for name in found]


def in_capitals(text: str) -> frozenset[str]:
    """Return the short words that stand in capitals among others that do not, in small letters.

    >>> sorted(in_capitals("Ask IT whether the CI runs")), in_capitals("ASK IT NOW")
    (['ci', 'it'], frozenset())
    """
    if text.upper() == text:
        return frozenset()
    return frozenset(word.lower() for word in _CAPITALS.findall(text))


def parts_of(words: Iterable[str]) -> list[str]:
    """Return the beginnings and ends of all long words among tokens, each after a `MARK`."""
    found = []
    for token in words:
        plain = split_token(token)[0]
        if MIN_COMPOUND <= len(plain) <= _MAX_COMPOUND and plain.isalpha():
            cuts = range(MIN_PART, len(plain) - MIN_PART + 1)
            found += [MARK + part for cut in cuts for part in (plain[:cut], plain[cut:])]
    return list(dict.fromkeys(found))


def without_words(text: str, left_out: Collection[str]) -> str:
    """Return a text without some words and the "'s" after them; all of it if none is left."""
    if not left_out:
        return text
    kept = _POSSESSOR.sub(lambda found: "" if folded(found[1]) in left_out else found[0], text)
    return " ".join(kept.split()) if whole_words(kept) else text


def _may_hold_identifiers(text: str) -> bool:
    """Return whether a text has a seam of an identifier. Most have none, and this test is cheap.

    The text becomes one large number with a byte for each character. A shift by seven bits moves
    each character's left sides onto the right sides of the next one. (It also moves a capital's
    highest bit onto its own lowest bit, which only joints have.) This takes a fifth of the time of
    a search with a pattern.
    """
    sides = int.from_bytes(text.encode(errors="replace").translate(_SEAMS), "big")
    return bool(sides & sides >> 7)


def split_token(token: str) -> tuple[str, str]:
    """Return a token's word without diacritics, and the word as it was written."""
    plain, _, written = token.partition(MARK)
    return plain, written or plain


def script_of(run: str) -> WritingSystem:
    """Return how a run of characters that `whole_words` returned is cut."""
    found = _RUNS.match(run)
    kind = found.lastgroup if found else None
    return kind if kind in {"han", "hangul", "thai"} else "spaced"  # type: ignore[return-value]


def is_han(sign: str) -> bool:
    """Return whether a text is one Chinese character."""
    return _HAN.fullmatch(sign) is not None


def pairs(run: str) -> list[str]:
    """Return all pairs of adjacent characters; of a single character, return that."""
    return [one + other for one, other in pairwise(run)] or [run]


def triples(run: str) -> list[str]:
    """Return all triples of adjacent characters; of a shorter run, return the run."""
    return [run[start : start + 3] for start in range(max(1, len(run) - 2))]


def _words(text: str, cut: Callable[[str], tuple[str, ...]]) -> list[str]:
    if text.isascii():
        return text.encode().translate(_ASCII).decode().split()
    written = unicodedata.normalize("NFKC", text).lower().replace("_", " ")
    return [token for word in _WORD.findall(written) for token in cut(word)]


@lru_cache(maxsize=1 << 15)
def _index_tokens(word: str) -> tuple[str, ...]:
    if word.isascii():
        return (word,)
    return tuple(token for run in _RUNS.finditer(word) for token in _tokens_of_run(run))


@lru_cache(maxsize=1 << 12)
def _whole(word: str) -> tuple[str, ...]:
    """Return a word's runs of one script, as tokens."""
    if word.isascii():
        return (word,)
    return tuple(_token(run[0]) for run in _RUNS.finditer(word) if _plain(run[0]))


def _tokens_of_run(run: re.Match[str]) -> list[str]:
    text = _plain(run[0])
    if not text:
        return []
    match run.lastgroup:
        case "han":
            return [*_HAN.findall(text), *(pairs(text) if len(text) > 1 else ())]
        case "hangul":
            return [text[0], *(pairs(text) if len(text) > 1 else ())]
        case "thai":
            return [*pairs(text), *(triples(text) if len(text) > 2 else ())]
        case _:
            return [_token(run[0]), *_without_prefixes(text)]


def _token(written: str) -> str:
    plain = _plain(written)
    return plain if plain == written else f"{plain}{MARK}{written}"


def _plain(written: str) -> str:
    """Return a word without diacritics, and an Arabic one without its article."""
    return _ARABIC.sub("", "".join(_WORD.findall(folded(written))), count=1)


def _without_prefixes(word: str) -> list[str]:
    """Return a Hebrew word without its first letter and its first two, if these may be prefixes."""
    if not _HEBREW.fullmatch(word):
        return []
    return [
        word[n:] for n in (1, 2) if all(x in _HEBREW_PREFIXES for x in word[:n]) and word[n + 1 :]
    ]
