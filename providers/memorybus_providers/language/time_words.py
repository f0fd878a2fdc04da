"""Patterns for the names of past and present times in English and German, and what they mean.

The texts are folded (see `words.folded`). Each pattern has a kind, which tells `times` what its
groups mean. If several patterns match the same words, the first one counts.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

DAYS_AGO: Final[Mapping[str, int]] = MappingProxyType(
    {
        "today": 0, "yesterday": 1, "the day before yesterday": 2, "day before yesterday": 2,
        "heute": 0, "gestern": 1, "vorgestern": 2,
    }
)  # fmt: skip
"""The names of days, with how many days ago they were."""

HOURS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "this morning": (0, 12), "this afternoon": (12, 18), "this evening": (18, 24),
        "tonight": (18, 24), "yesterday morning": (-24, -12), "yesterday afternoon": (-12, -6),
        "yesterday evening": (-6, 0), "yesterday night": (-6, 6), "last night": (-6, 6),
        "heute morgen": (0, 12), "heute fruh": (0, 12), "heute vormittag": (0, 12),
        "heute nachmittag": (12, 18), "heute abend": (18, 24), "gestern fruh": (-24, -12),
        "gestern morgen": (-24, -12), "gestern vormittag": (-24, -12),
        "gestern nachmittag": (-12, -6), "gestern abend": (-6, 0), "gestern nacht": (-6, 6),
        "letzte nacht": (-6, 6),
    }
)  # fmt: skip
"""The names of parts of days, with the hours from the beginning of today to their start and end."""

_NUMBERS: Final = """
    1 a an one ein eine einem einer einen; 2 two couple zwei; 3 three few drei; 4 four vier;
    5 five funf; 6 six sechs; 7 seven sieben; 8 eight acht; 9 nine neun; 10 ten zehn; 11 eleven elf;
    12 twelve zwolf
"""
_UNITS: Final = """
    day days tag tage tagen; week weeks woche wochen; month months monat monate monaten;
    year years jahr jahre jahren; weekend wochenende
"""
_MONTHS: Final = """
    january jan januar janner; february feb februar; march mar marz; april apr; may mai; june jun
    juni; july jul juli; august aug; september sep sept; october oct oktober; november nov;
    december dec dezember
"""
_WEEKDAYS: Final = """
    monday montag; tuesday dienstag; wednesday mittwoch; thursday donnerstag; friday freitag;
    saturday samstag sonnabend; sunday sonntag
"""

NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {word: int(group.split()[0]) for group in _NUMBERS.split(";") for word in group.split()[1:]}
)
"""Number words of all languages; "few" is a guess."""

UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {word: group.split()[0] for group in _UNITS.split(";") for word in group.split()}
)
"""The English singular of each word for a unit."""

MONTH_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {word: n for n, group in enumerate(_MONTHS.split(";"), 1) for word in group.split()}
)
WEEKDAY_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {word: n for n, group in enumerate(_WEEKDAYS.split(";")) for word in group.split()}
)
"""The numbers of months, from 1, and of days of the week, from 0 for Monday."""

TELLING: Final = frozenset(
    word
    for name in (*DAYS_AGO, *HOURS, *UNITS, *MONTH_NUMBERS, *WEEKDAY_NUMBERS)
    for word in name.split()
) - {"the", "before", "this", "last"}
"""Every expression of a time has one of these words, or a digit."""

_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9])"

_EVERYWHERE = (
    ("date", rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)"),
    ("date", rf"{_DAY}\.\s?(?P<month>\d\d?)\.\s?{_YEAR}"),
)
_ENGLISH_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november"
    r"|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
)
_ENGLISH_DAY = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_ENGLISH_N = (
    r"(?P<n>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:an?\s+)?(?:few|couple)(?:\s+of)?|an?)"
)
_GERMAN_MONTH = (
    r"(?P<month>januar|janner|februar|marz|april|mai|juni|juli|august|september|oktober|november"
    r"|dezember)"
)
_GERMAN_DAY = r"(?P<weekday>(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend)"
_GERMAN_N = (
    r"(?P<n>\d{1,3}|eine[mnr]?|ein|zwei|drei|vier|funf|sechs|sieben|acht|neun|zehn|elf|zwolf)"
)
_GERMAN_LAST = r"(?:letzte|vergangene|vorige)[nrs]?"

_WRITTEN: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "english": (
        ("hours", (r"(?P<name>this\s+(?:morning|afternoon|evening)|tonight|last\s+night"
         r"|yesterday\s+(?:morning|afternoon|evening|night))")),
        ("day", r"(?P<name>today|(?:the\s+)?day\s+before\s+yesterday|yesterday)"),
        ("ago", _ENGLISH_N + r"\s+(?P<unit>days?|weeks?|months?|years?)\s+ago"),
        ("past", r"(?:the|these|this)\s+(?:last|past)\s+" + _ENGLISH_N
         + r"\s+(?P<unit>days|weeks|months|years)(?!\s+of\b)"),
        ("past", r"(?:in|over|during|for|within)\s+(?:last|past)\s+" + _ENGLISH_N
         + r"\s+(?P<unit>days|weeks|months|years)(?!\s+of\b)"),
        ("past", (r"(?:in|over|during|for|within)\s+the\s+(?:last|past)"
         r"\s+(?P<unit>day|week|month|year)(?!\s+of\b)")),
        ("last", r"(?:(?<!\bthe )last|this\s+past)\s+(?P<unit>weekend|week|month|year)(?!\s+of\b)"),
        ("this", r"this\s+(?P<unit>weekend|week|month|year)"),
        ("weekday", r"(?:on|(?<!\bthe )last|this\s+past)\s+" + _ENGLISH_DAY),
        ("date", _DAY + r"(?:st|nd|rd|th)?\s+(?:of\s+)?" + _ENGLISH_MONTH
         + r"(?:,?\s+(?:of\s+)?" + _YEAR + ")?"),
        ("date", _ENGLISH_MONTH + r"\s+(?:the\s+)?" + _DAY + r"(?:st|nd|rd|th)?\b"
         r"(?:,?\s+" + _YEAR + ")?"),
        ("last month", r"(?<!\bthe )last\s+" + _ENGLISH_MONTH),
        ("month", r"(?:(?:in|during|of|early|late|mid|back\s+in)\s+)?" + _ENGLISH_MONTH
         + r",?\s+(?:of\s+)?" + _YEAR),
        ("month", r"(?:in|during)\s+(?:early\s+|late\s+|mid[\s-])?" + _ENGLISH_MONTH),
        ("year", r"(?:in|during|of)\s+" + _YEAR),
    ),
    "german": (
        ("hours", (r"(?P<name>heute\s+(?:morgen|fruh|vormittag|nachmittag|abend)"
         r"|gestern\s+(?:fruh|morgen|vormittag|nachmittag|abend|nacht)|letzte\s+nacht)")),
        ("day", r"(?P<name>heute|vorgestern|gestern)"),
        ("ago", r"vor\s+" + _GERMAN_N + r"\s+(?P<unit>tag(?:en)?|wochen?|monat(?:en)?"
         r"|jahr(?:en)?)"),
        ("past", r"in\s+den\s+(?:letzten|vergangenen)\s+" + _GERMAN_N
         + r"\s+(?P<unit>tagen|wochen|monaten|jahren)"),
        ("last", _GERMAN_LAST + r"\s+(?P<unit>wochenende|woche|monat|jahr)"),
        ("this", r"diese[nrsm]?\s+(?P<unit>wochenende|woche|monat|jahr)"),
        ("weekday", rf"(?:am|{_GERMAN_LAST})\s+" + _GERMAN_DAY),
        ("date", _DAY + r"\.\s*" + _GERMAN_MONTH + rf"(?:\s+{_YEAR})?"),
        ("last month", _GERMAN_LAST + r"\s+" + _GERMAN_MONTH),
        ("month", r"(?:im\s+)?" + _GERMAN_MONTH + r"\s+" + _YEAR),
        ("month", r"im\s+" + _GERMAN_MONTH),
        ("year", r"(?:im\s+jahre?|in)\s+" + _YEAR),
    ),
}  # fmt: skip


def _compiled(written: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(rf"(?<![\w.-])(?:{one})(?!\w)")) for kind, one in written)


@cache
def time_patterns() -> Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]]:
    """Return kinds and patterns by language; those of the language "" are used in all languages."""
    return MappingProxyType(
        {
            "": _compiled(_EVERYWHERE),
            **{language: _compiled(written) for language, written in _WRITTEN.items()},
        }
    )


_ACTIVITY: Final = """
    ask asked asking decide decided promise promised learn learned learnt plan planned suggest
    suggested recommend recommended buy bought get got order ordered eat ate cook cooked meet met
    see saw visit visited read write wrote work worked make made finish finished start started
    fragte gefragt entschieden beschlossen versprochen gelernt geplant empfohlen vorgeschlagen
    gekauft bestellt gegessen gekocht getroffen gesehen besucht gelesen geschrieben gearbeitet
"""
ACTIVITIES: Final = frozenset(_ACTIVITY.split())
"""Words that ask what somebody did at a time; the answer may use other words."""
