"""What search knows of English: stop words, irregular forms, months, and the stems of words.

Stems are made by Porter's suffix stripping (M. F. Porter, 1980) after irregular forms: here "went"
meets "go". The full-text index uses SQLite's own ``porter``, which knows no irregular forms.
Nothing here is taken from a data set, or tuned to one.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

_STOP_WORDS = """
    a about after again all also am an and any are as at be been before being between both but by
    can could did do does doing don down during each else ever few for from further get gets
    getting got had has have having he her here hers herself him himself his how i if in into is
    it its itself just kind let like likely ll many may me might more most much must my myself no
    nor not now of off on once one only or other our ours ourselves out over own re s same shall
    she should so some such t than that the their theirs them themselves then there these they
    this those through to too type under until up us ve very was we were what when where which
    while who whom whose why will with would you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about what is asked for."""

_IRREGULAR = """
    arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became;
    begin began begun; bend bent; bind bound; bite bit bitten; bleed bled; blow blew blown;
    break broke broken; bring brought; build built; burn burnt; buy bought; catch caught;
    choose chose chosen; come came; creep crept; deal dealt; dig dug; draw drew drawn;
    dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
    feed fed; feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade;
    forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; give gave given;
    go goes went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held;
    keep kept; kneel knelt; know knew known; lay laid; lead led; learn learnt; leave left;
    lend lent; light lit; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden;
    ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold;
    send sent; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk;
    sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken;
    spend spent; spin spun; stand stood; steal stole stolen; stick stuck; sting stung;
    strike struck; swear swore sworn; sweep swept; swim swam swum; swing swung; take took taken;
    teach taught; tear tore torn; tell told; think thought; throw threw thrown;
    understand understood; wake woke woken; wear wore worn; weep wept; win won; write wrote
    written; child children; foot feet; goose geese; knife knives; leaf leaves; life lives;
    man men; mouse mice; person people; shelf shelves; tooth teeth; wife wives; wolf wolves;
    woman women; good better best; bad worse worst
"""

FORMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {group.split()[0]: tuple(group.split()) for group in _IRREGULAR.split(";")}
)
"""A base form and all its irregular forms, itself first."""

BASE_FORM: Final[Mapping[str, str]] = MappingProxyType(
    {form: base for base, forms in FORMS.items() for form in forms}
)
"""Any form to its base form."""

_MONTHS = "january february march april may june july august september october november december"
MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {name: number for number, name in enumerate(_MONTHS.split(), start=1)}
)
"""The months' numbers, from 1."""

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
