"""Finds the names that a text mentions, and who has which role in it; pure.

A name is a run of capitalised words. In scripts without capitals no names are found; there a fact
is found by its words alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

import msgspec

from memorybus_providers.language.english import MONTHS, STOP_WORDS
from memorybus_providers.language.words import folded

_TITLES = """
    dr doctor prof professor mr mrs ms miss sir dame herr frau madame monsieur mme mlle senor
    senora sr sra don dona signor signora
"""
TITLES: Final = frozenset(_TITLES.split())
"""Folded words that come before a surname and are not part of it."""

_SMALL = "de da del della der den di du el la le van von bin ibn al"
_PARTICLES = frozenset(_SMALL.split())
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
WEEKDAYS: Final = frozenset(_DAYS.split())
"""The names of the days, folded."""

_NO_NAMES = STOP_WORDS | WEEKDAYS | frozenset(MONTHS)
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_OWNS = re.compile(r"['’]s$")
_GAP = re.compile(r"\.? ")
_SENTENCE = re.compile(r"(?:^|[.!?:;\n\"“(])\s*$")
_MAX_NAME_WORDS = 5

_NAME = r"(?-i:[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*){0,2})"
_MINE = (
    r"my|our|mein\w{0,2}|unser\w{0,2}|mi|nuestr[oa]|ma|mon|notre|mi[ao]|nostr[oa]|minha|meu|"
    r"моя|мой|моей|моего|наш\w{0,2}"
)
_OWNER = rf"(?P<owner>{_MINE}|your|{_NAME}['’]s)"
_STOP = "|".join(sorted(STOP_WORDS))
_VERBS = "ist|es|est|named|called|heißt|se|si"
_ROLE = rf"(?P<role>(?!(?:{_STOP})\b)[^\W\d_]+(?: (?!(?:{_STOP}|{_VERBS})\b)[^\W\d_]+)??)"
_CALLED = (
    r"(?:,|['’]s name is| (?:(?:is|was|ist|es|est) )?(?:called|named)| heißt| se llama|"
    r" s['’]appelle| si chiama| se chama)?"
)
# The large patterns are compiled when they are first needed: a worker that only applies never does.
_TELLING = (
    rf"\b{_OWNER} {_ROLE}{_CALLED} (?P<name>{_NAME})",
    rf"\b(?P<name>{_NAME})(?:,| is| was) {_OWNER} {_ROLE}",
)
_WEAKLY = rf"\b{_OWNER} {_ROLE} (?:is|ist|es|est|è) (?P<name>{_NAME})"
_ASKED = rf"(?:{_OWNER}|the|her|his|their) {_ROLE}"
_SPOKEN_OF = rf"\b{_OWNER} {_ROLE.removesuffix('??)')}?)"
_FIRST_PERSON = re.compile(_MINE, re.IGNORECASE)


class Mention(msgspec.Struct, frozen=True):
    """A name in a text.

    Attributes:
        name: as it is written, without title and possessive.
        titled: whether a title precedes it.
        opens: whether it begins a sentence, so that the capital of its first word means nothing.
        before: the word before it, folded; empty at the beginning of the text.
    """

    name: str
    titled: bool = False
    opens: bool = False
    before: str = ""


class RoleStatement(msgspec.Struct, frozen=True):
    """A statement of somebody's role: "my sister Ana".

    Attributes:
        owner: the owner of the role, folded: "" for the speaker, "you" for the person addressed,
            else a name.
        role: the role, folded: one or two words.
        name: the person with this role, as it is written.
        weak: whether `name` may not be a name: "my sister is Polish".
    """

    owner: str
    role: str
    name: str
    weak: bool = False


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded, in order."""
    return tuple(re.findall(r"[^\W_]+", folded(text)))


def mentions(text: str) -> list[Mention]:
    """Return the names in a text, in order; stop words, months and weekdays are not names."""
    return [found for run in _runs(text) if (found := _mention(text, run)) is not None]


def role_statements(text: str) -> list[RoleStatement]:
    """Return all statements of roles in a text."""
    hits = [
        (hit, False) for pattern in _TELLING for hit in re.finditer(pattern, text, re.IGNORECASE)
    ]
    hits += [(hit, True) for hit in re.finditer(_WEAKLY, text, re.IGNORECASE)]
    return [
        _role_statement(hit, weak)
        for hit, weak in hits
        if hit["name"][0].isupper() and folded(hit["name"].split()[0]) not in _NO_NAMES
    ]


def parse_role(asked: str) -> tuple[str, str] | None:
    """Return the owner and the role in "my sister" or "Tom's boss", in the form of `RoleStatement`.

    For any other text the result is None.
    """
    hit = re.fullmatch(_ASKED, asked.strip(), re.IGNORECASE)
    if hit is None:
        return None
    return _owner(hit["owner"] or "my"), folded(hit["role"])


def roles_in(question: str) -> list[tuple[str, str]]:
    """Return the roles that a question mentions, as `parse_role` returns them, longest first."""
    found = []
    for hit in re.finditer(_SPOKEN_OF, question, re.IGNORECASE):
        role = folded(hit["role"])
        found += [(_owner(hit["owner"]), role), (_owner(hit["owner"]), role.split()[0])]
    return list(dict.fromkeys(found))


def without_title(name: str) -> str:
    """Return a name without the titles before it."""
    parts = name.split()
    while len(parts) > 1 and folded(parts[0]).rstrip(".") in TITLES:
        parts = parts[1:]
    return " ".join(parts)


def names_any(text: str, aliases: Iterable[Sequence[str]]) -> bool:
    """Say whether a text contains one of these aliases, each given as its folded words.

    An alias that is part of a longer name does not count: "Martha" is not in "Martha Jones".
    """
    known = {tuple(alias) for alias in aliases}
    said = [(words(mention.name), mention.opens) for mention in mentions(text)]
    said += [(words(one.name), False) for one in role_statements(text)]
    if any(name in known for name, _ in said):
        return True
    rest = f" {' '.join(words(text))} "
    for name, opens in said:
        if not (opens and any(name[-len(alias) :] == alias for alias in known)):
            rest = rest.replace(f" {' '.join(name)} ", " ")
    return any(f" {' '.join(alias)} " in rest for alias in known)


Token = re.Match[str]


def _runs(text: str) -> Iterator[list[Token]]:
    """Yield the runs of capitalised words, including the particles within them."""
    run: list[Token] = []
    for token in _TOKEN.finditer(text):
        follows = run and _GAP.fullmatch(text, run[-1].end(), token.start())
        stop = run and text[run[-1].end()] == "." and not _is_abbreviation(run[-1])
        if not follows or stop or len(run) == _MAX_NAME_WORDS or _OWNS.search(run[-1][0]):
            yield run
            run = []
        if token[0][0].isupper() or (run and folded(token[0]) in _PARTICLES):
            run.append(token)
        else:
            yield run
            run = []
    yield run


def _is_abbreviation(token: Token) -> bool:
    return len(token[0]) == 1 or folded(token[0]) in TITLES


def _mention(text: str, run: list[Token]) -> Mention | None:
    kept = list(run)
    while kept and folded(kept[-1][0]) in _PARTICLES and not kept[-1][0][0].isupper():
        kept.pop()
    titled = False
    while kept and (_is_no_name(kept[0]) or (len(kept) > 1 and folded(kept[0][0]) in TITLES)):
        titled = folded(kept.pop(0)[0]) in TITLES
    if not kept or any(_is_no_name(token) for token in kept):
        return None
    name = _OWNS.sub("", text[kept[0].start() : kept[-1].end()])
    before = text[: kept[0].start()]
    opens = _SENTENCE.search(before[-3:]) is not None
    last = words(before[-40:])
    return Mention(name, titled, opens and not titled, last[-1] if last else "")


def _is_no_name(token: Token) -> bool:
    return folded(_OWNS.sub("", token[0])) in _NO_NAMES


def _role_statement(hit: re.Match[str], weak: bool) -> RoleStatement:
    name = takewhile(lambda word: word[0].isupper(), _OWNS.sub("", hit["name"]).split())
    return RoleStatement(_owner(hit["owner"]), folded(hit["role"]), " ".join(name), weak)


def _owner(written: str) -> str:
    if _FIRST_PERSON.fullmatch(written):
        return ""
    owner = folded(_OWNS.sub("", written))
    return "you" if owner == "your" else owner
