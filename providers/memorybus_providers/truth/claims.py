"""Reads claims that are true for a time: where somebody lives, what something is; pure.

A claim fills a slot of a subject, such as "lives in" or "favourite colour", and a later claim for
the same slot of the same subject replaces it. Only plain statements about the present are claims:
no question, no plan, no past. English forms are read, and the commonest forms of a few other
languages; kept facts of any language compete by their words (`rewords`).
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from memorybus_providers.language.english import MONTHS, STOP_WORDS
from memorybus_providers.language.mentions import WEEKDAYS, mentions, words
from memorybus_providers.language.query import stems

ME: Final = ""
"""The subject of the speaker's own claims, and of kept facts that name nobody: the person."""

SLOT_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "home": (
            "live", "lives", "living", "moved", "moving", "reside", "resides", "based", "relocated",
            "settled", "wohne", "umgezogen", "gezogen", "vivo", "mude", "habite", "demenage",
            "trasferito", "trasferita",
        ),
        "employer": ("work", "works", "working", "job", "joined", "employed", "hired", "started",
            "arbeite", "trabajo", "travaille", "lavoro"),
        "occupation": ("work", "works", "working", "job", "employed", "promoted"),
        "marital": ("married", "engaged", "divorced", "single", "widowed", "separated"),
        "studies": ("study", "studying", "studies", "enrolled", "major", "majoring"),
        "drives": ("drive", "drives", "driving"),
        "uses": ("use", "uses", "using", "prefer", "prefers", "switched", "changed", "migrated",
            "replaced"),
        "diet": ("vegetarian", "vegan", "pescatarian", "meat"),
    }
)  # fmt: skip
"""The folded words by which other claims for a slot are found."""

LONGEST_VALUE = 60

_FILL = (
    r"(?:(?:have|has|had|am|is|are|was|were|been|be|got|getting|now|just|recently|finally|currently|"
    r"still|already|actually|also|officially|really|both|all|since|again|['’](?:ve|m|re|s))\s+)*"
)
_SUBJECT = (
    r"(?P<subject>\b[Ii]\b|\b[Ww]e\b|\b[Tt]he user\b|\b[Uu]ser\b|\b[Mm]y [a-z]+(?: [a-z]+)?|"
    r"\b(?:[A-Z]\w+\.? )?[A-Z]\w+(?: [A-Z]\w+)?)"
)
_LED = rf"(?:{_SUBJECT}(?:['’](?:ve|m|re|s))?\s+|^\W*){_FILL}"
_TO = r"\s+(?:(?:over|back|down|out|here|together|away|house|home|permanently)\s+)*"
_FROM = r"(?:from\s+[\w .'’-]{1,40}?\s+)?"
_VALUE = rf"(?P<value>(?:[^,.;!?\n]|[.,](?=[^\s])){{1,{LONGEST_VALUE}}})"
_A = r"(?:(?:an?|the)\s+)?"
_HAS_JOB = (
    r"(?:started|took|found|accepted|landed|got|have|has)(?:\s+\w+){0,3}\s+(?:job|position|role)"
)
_NOW_OR_AGAIN = r"\s+(?:(?:now|again)\s+)?"
_VERBS: Final = (
    ("home", rf"(?:[Ll]ives?|[Ll]iving|[Rr]esides?|[Rr]esiding|[Bb]ased){_TO}(?:in|at|near)\s+"),
    ("home", rf"(?:[Mm]oved|[Rr]elocated){_TO}{_FROM}(?:to|into)\s+"),
    ("home", rf"[Ss]ettled{_TO}in\s+"),
    ("employer", rf"(?:[Ww]ork(?:s|ing)?|[Hh]ired|{_HAS_JOB}){_NOW_OR_AGAIN}(?:at|for|by|with)\s+"),
    ("employer", r"[Jj]oined\s+(?=[A-Z])"),
    ("occupation", rf"(?:[Ww]orks?|[Ww]orking|[Ee]mployed)\s+(?:now\s+)?as\s+{_A}"),
    ("occupation", rf"promoted\s+to\s+{_A}"),
    ("marital", r"(?=(?:married|engaged|divorced|single|widowed|separated)\b)"),
    ("studies", r"(?:stud(?:y|ies|ying)|enrolled\s+(?:in|at)|major(?:s|ing)?\s+in)\s+"),
    ("drives", r"(?:drives?|driving)\s+(?:an?|my|the|his|her)\s+"),
    ("diet", rf"(?:(?:eats?|eating)\s+)?{_A}(?=(?:vegetarian|vegan|pescatarian|meat)\b)"),
)  # fmt: skip
# Compiled when they are first needed: a worker that only applies never does.
_CLAIMS = tuple((slot, f"{_LED}{verb}{_VALUE}") for slot, verb in _VERBS)
_PLACE = r"(?P<value>[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*)*)"
_WORD = r"\s+(?:\w+\s+)?"
_FOREIGN = (
    ("home", rf"\b(?:[Ww]ohne|[Vv]ivo|['’]habite|[Hh]abito){_WORD}(?:in|en|a|à)\s+{_PLACE}"),
    ("home", rf"\bnach\s+{_PLACE}\s+(?:um)?gezogen"),
    ("home", rf"\b(?:mudé a|déménagé à|trasferit[oa] a|mudei para)\s+{_PLACE}"),
    ("employer", rf"\b(?:[Aa]rbeite|[Tt]rabajo){_WORD}(?:bei|en|para)\s+{_PLACE}"),
    ("employer", rf"\b(?:[Tt]ravaille|[Ll]avoro){_WORD}(?:chez|per|a)\s+{_PLACE}"),
)
_ATTRIBUTE = re.compile(
    r"(?:(?P<mine>\b(?:[Mm]y|[Oo]ur)|\b[Tt]he user['’]s)|\b(?P<owner>(?:[A-Z]\w+ )?[A-Z]\w+)['’]s|"
    r"(?P<kept>^(?:[Tt]he )?))\s*(?P<what>\w+(?: \w+){0,3}?)(?:\s+|(?=:))"
    r"(?:(?:is|are|(?:has |was )?changed to|became|has become)\s+|(?<=\w):\s*)"
    rf"(?:now\s+|currently\s+)?(?:called\s+|named\s+)?{_VALUE}"
)
_WHAT = r"(?P<what>\w+(?: \w+){0,2}?)"
_CHANGES = r"(?:[Cc]hanged|[Uu]pdated|[Mm]oved|[Rr]escheduled|[Pp]ostponed|[Pp]ushed)"
_TILL = r"\s+(?:back\s+)?(?:to|until)\s+"
_WAS = r"\s+(?:was|is|were|are|got|has been|have been)\s+(?:now\s+)?"
_CHANGED = (
    re.compile(rf"\b{_CHANGES}\s+(?:my|our|the)\s+{_WHAT}{_TILL}{_VALUE}"),
    re.compile(rf"\b(?:[Mm]y|[Oo]ur|[Tt]he)\s+{_WHAT}{_WAS}{_CHANGES}{_TILL}{_VALUE}"),
)
_OLD = r"[^,.;!?\n]{1,30}?"
_SWITCHED = re.compile(
    rf"{_LED}(?:(?:switched|changed|migrated)\s+from\s+(?P<old>{_OLD})\s+to|"
    rf"replaced\s+(?P<out>{_OLD})\s+(?:with|by))\s+{_VALUE}"
)
_USES = re.compile(rf"{_LED}(?:[Uu]ses?|[Uu]sing|[Pp]refers?)\s+{_VALUE}")
_CLAUSES = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:and|but|so)\s+(?=(?:I|we|my|our)\b)")
_JOINED = re.compile(
    r"\b(I|[Ww]e)\b([^.!?;\n]{1,80}?),? and (?:(?:now|then|have|has|am) )*"
    r"(?=(?:moved|joined|started|got|took|found|relocated|settled|live|work|drive|switched)\b)"
)
_NOT_NOW = re.compile(
    r"\b(?:will|would|might|may|could|should|must|want|wants|wanted|wish|hope|hopes|hoping|plan|plans|"
    r"planning|going to|thinking|consider(?:ing)?|[Ii]f|used to|almost|nearly|never|ago|child|"
    r"childhood|grew up|imagine|dream|dreamt|not|n['’]t|don['’]t|until|pretend)\b|n['’]t\b|\?\s*$"
)
_END = re.compile(
    r"\s+(?:and|but|with|since|because|when|while|where|which|who|that|last|this|next|for|from|"
    r"as of|after|before|so|now|these|those|today|yesterday|a few|on|in)\b.*$"
)
_ENDED = re.compile(r"\b(?:no longer|any ?more)\b")
_NO_MORE = re.compile(r"\b(?:no longer|any ?more)\b|\b(?:do|does|am|is)(?: not|n['’]t)\b")
_AMERICAN = re.compile(r"(?<=\w\w)our(?=$|ite$)")
_BRITISH = re.compile(r"or$")
_BEING = re.compile(rf" (?:is|are|became|become) |:|{_CHANGES} ")
_BEGINNINGS = {slot: {word[1:] for word in known} for slot, known in SLOT_WORDS.items()}
"""Words without their first letter; a clause that fills a slot contains one of them."""

_VAGUE = """
    day week weekend morning evening night life thing idea point question problem guess mind fault
    turn pleasure time plan goal hope
"""
_PASSING_WORDS = frozenset(_VAGUE.split())
_OWNERS = frozenset({"my", "our", "the", "s"})
"""A spoken attribute contains one of these words; "s" is the ending of an owner's name."""

_CHOSEN = frozenset({"favorite", "preferred"})
_EXACT = re.compile(r"\d|@|\b[^\W\d_a-z]")
_NEWER = frozenset({"new", "current", "latest", "present", "actual"})
_OUTDATED = frozenset({"old", "former", "previous", "last", "first", "next"})
_DATES = frozenset(MONTHS) | WEEKDAYS
_HOURS = frozenset({"am", "pm", "noon", "midnight", "tomorrow"})
_LIVED_IN = "house home flat apartment town city village country countryside suburbs street"
_HOUSES = frozenset(_LIVED_IN.split())


class Claim(msgspec.Struct, frozen=True):
    """One thing that is true for a time.

    Attributes:
        slot: which property of the subject it states.
        subject: the owner of the property, folded; `ME` for the speaker.
        value: the value as it is written; empty if the text says that there is none now.
    """

    slot: str
    subject: str
    value: str

    @property
    def fills(self) -> tuple[str, str]:
        """The slot and the subject, which other claims may fill as well."""
        return self.slot, self.subject

    @property
    def value_stems(self) -> frozenset[str]:
        """The stems of those words of the value that carry meaning."""
        return frozenset(s for s in stems(self.value) if s not in STOP_WORDS)


def claims(text: str, *, kept: bool = False) -> list[Claim]:
    """Return what a text claims.

    Args:
        text: what was said or kept.
        kept: whether it was kept: "The deadline is Friday" is then about this one deadline.
    """
    spelled = frozenset(words(text))
    slots = [slot for slot, known in SLOT_WORDS.items() if not spelled.isdisjoint(known)]
    owned = (kept or not spelled.isdisjoint(_OWNERS)) and _BEING.search(text) is not None
    if slots:
        text = _JOINED.sub(r"\1\2. \1 ", text)
    found: dict[tuple[str, str], Claim] = {}
    for clause in _CLAUSES.split(text) if slots or owned else ():
        ended = _ENDED.search(clause) is not None
        plain = " ".join(_NO_MORE.sub("", clause).split()) if ended else clause
        made = _slot_claims(plain, slots, kept=kept) if slots else []
        if not made and owned:
            made = _attribute_claims(plain, kept=kept)
        if made and not _NOT_NOW.search(plain):
            found |= {one.fills: Claim(*one.fills, "") if ended else one for one in made}
    return list(found.values())


def search_words(claim: Claim) -> tuple[str, ...]:
    """Return phrases; every fact that fills the same slot contains one of them."""
    head = claim.slot.rsplit(" ", 1)[-1]
    return SLOT_WORDS.get(claim.slot, tuple(dict.fromkeys((head, _BRITISH.sub("our", head)))))


def frame(text: str) -> tuple[str, ...]:
    """Return the stems of those words of a kept text that carry meaning, for `rewords`."""
    return tuple(stem for stem in stems(text) if stem not in STOP_WORDS)


def rewords(one: Sequence[str], two: Sequence[str]) -> bool:
    """Say whether one kept text puts another value into the frame of the other.

    Both begin alike and share at least half of their words, and they differ nearer to the end:
    "Releases happen on Fridays", "Releases happen on Tuesdays".
    """
    if one == two or min(len(one), len(two)) < 2:
        return False
    ahead = _count_shared_beginning(one, two)
    room = min(len(one), len(two)) - ahead
    behind = min(room, _count_shared_beginning(one[::-1], two[::-1]))
    same, both = set(one) & set(two), set(one) | set(two)
    return ahead >= max(1, behind) and 2 * len(same) >= len(both)


def _count_shared_beginning(one: Sequence[str], two: Sequence[str]) -> int:
    """Return how many words the two texts share at their beginning."""
    differs = (i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    return next(differs, min(len(one), len(two)))


def _slot_claims(clause: str, slots: Sequence[str], *, kept: bool) -> list[Claim]:
    """Return the claims of one clause for some slots."""
    found = []
    for slot, pattern in _CLAIMS:
        if slot in slots and any(word in clause for word in _BEGINNINGS[slot]):
            for hit in re.finditer(pattern, clause):
                subject, value = _read_subject(hit["subject"], kept=kept), _read_value(hit["value"])
                if subject is not None and _is_value_of(slot, value):
                    found.append(Claim(slot, subject, value))
    if "uses" in slots:
        found += _use_claims(clause, kept=kept)
    for slot, pattern in _FOREIGN:
        if slot in slots:
            found += [Claim(slot, ME, hit["value"]) for hit in re.finditer(pattern, clause)]
    return found


def _use_claims(clause: str, *, kept: bool) -> list[Claim]:
    """Return claims of what is used; each has its own slot, which its replacement fills, too."""
    found = []
    for pattern in (_USES, _SWITCHED):
        for hit in pattern.finditer(clause):
            subject, value = _read_subject(hit["subject"], kept=kept), _read_value(hit["value"])
            old = value if pattern is _USES else hit["old"] or hit["out"]
            if subject is not None and words(old) and value:
                found.append(Claim(f"uses {' '.join(words(old))}", subject, value))
    return found


def _attribute_claims(clause: str, *, kept: bool) -> list[Claim]:
    """Return the claims of the form "my phone number is …"."""
    if not _BEING.search(clause):
        return []
    found = [
        Claim(named, ME, value)
        for pattern in _CHANGED
        for hit in pattern.finditer(clause)
        if (named := " ".join(words(hit["what"]))) and (value := _read_value(hit["value"]))
    ]
    for hit in _ATTRIBUTE.finditer(clause):
        if hit["kept"] is not None and not kept and not _is_dated(hit["kept"], hit["value"]):
            continue
        what = [_AMERICAN.sub("or", w) for w in words(hit["what"]) if w not in _NEWER]
        value = _read_value(hit["value"])
        if value and what and not _is_vague(what) and (kept or _is_exact(what, value)):
            owner = " ".join(words(hit["owner"] or ME))
            owner = ME if owner.endswith("user") else owner
            found.append(Claim(" ".join(what), owner, value))
    return found


def _is_dated(article: str, value: str) -> bool:
    """Say whether "the deadline is Friday" was said: what has a date is one, where others vary."""
    return bool(article) and not (_DATES | _HOURS).isdisjoint(words(value))


def _is_exact(what: Sequence[str], value: str) -> bool:
    """Say whether what was said gives a value, where "my art is important to me" gives none."""
    return what[0] in _CHOSEN or _EXACT.search(value) is not None


def _is_vague(what: list[str]) -> bool:
    known = STOP_WORDS | _PASSING_WORDS | _OUTDATED
    return what[-1] in known or not known.isdisjoint(what[:1]) or " ".join(what) in {"user", "i"}


def _read_subject(written: str | None, *, kept: bool) -> str | None:
    """Return the subject of a claim; None if a clause without a subject was said, not kept."""
    if written is None:
        return ME if kept else None
    said = words(written)
    if said[-1] in {"i", "we", "user"}:
        return ME
    return None if said[-1] in STOP_WORDS else " ".join(said)


def _read_value(written: str) -> str:
    return _END.sub("", written).strip(" '\"’")


def _is_value_of(slot: str, value: str) -> bool:
    """Say whether a value suits its slot: a home, for example, must be a place."""
    if slot not in {"home", "employer"}:
        return bool(value)
    named = [one for one in mentions(value) if words(one.name)[0] not in _DATES]
    return bool(named) or (slot == "home" and not _HOUSES.isdisjoint(words(value)))
