"""Words to stems: Porter's suffix stripping (M. F. Porter, 1980) after irregular forms.

The full-text index stems by SQLite's own ``porter``, which knows no irregular forms; re-ranking
compares stems made here, where "went" meets "go".
"""

import re
from functools import lru_cache

from memorybus_providers.holographic.english import BASE_FORM

_WORD = re.compile(r"[a-z]{3,40}")
_VC = re.compile(r"v+c+")
_CVC = re.compile(r"cvc$")

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"),
    ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4_SUFFIXES = (
    "ement ment ance ence able ible sion tion ant ent ism ate iti ous ive ize al er ic ou"
)
_STEP_4 = tuple((suffix, "") for suffix in _STEP_4_SUFFIXES.split())


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; a word that is not plain English letters is its own.

    >>> stem("researching"), stem("went"), stem("2023")
    ('research', 'go', '2023')
    """
    base = BASE_FORM.get(word, word)
    return _porter(base) if _WORD.fullmatch(base) else base


def _porter(word: str) -> str:
    word = _without_plural(word)
    word = _without_past(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2, least=1)
    word = _replaced(word, _STEP_3, least=1)
    word = _replaced(word, _STEP_4, least=2)
    return _without_final(word)


def _shape(word: str) -> str:
    """Spell a word in ``c`` and ``v``: y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    return len(_VC.findall(_shape(word)))


def _ends_short(word: str) -> bool:
    return bool(_CVC.search(_shape(word))) and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        rest = word.removesuffix(suffix)
        if rest != word:
            return _repaired(rest) if "v" in _shape(rest) else word
    return word


def _repaired(word: str) -> str:
    """Give back the e, or take the doubled letter, that ``ed`` and ``ing`` left behind."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1:] == word[-2:-1] and _shape(word)[-1] == "c" and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _replaced(word: str, rules: tuple[tuple[str, str], ...], *, least: int) -> str:
    for suffix, new in rules:
        if word.endswith(suffix):
            rest = word[: len(word) - len(suffix)]
            if suffix in {"sion", "tion"}:
                rest += suffix[0]
            return rest + new if _measure(rest) >= least else word
    return word


def _without_final(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
