"""Patterns for the names of past and present times in several languages, and what they mean.

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
        "aujourd'hui": 0, "hier": 1, "avant-hier": 2, "avant hier": 2,
        "hoy": 0, "ayer": 1, "anteayer": 2, "antes de ayer": 2,
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
        "ce matin": (0, 12), "cet apres-midi": (12, 18), "ce soir": (18, 24),
        "hier matin": (-24, -12), "hier apres-midi": (-12, -6), "hier soir": (-6, 0),
        "la nuit derniere": (-6, 6), "cette nuit": (-6, 6),
        "esta manana": (0, 12), "esta tarde": (12, 18), "esta noche": (18, 24),
        "ayer por la manana": (-24, -12), "ayer por la tarde": (-12, -6),
        "ayer por la noche": (-6, 0), "anoche": (-6, 6),
    }
)  # fmt: skip
"""The names of parts of days, with the hours from the beginning of today to their start and end."""

_NUMBERS: Final = """
    1 a an one ein eine einem einer einen un une una uno; 2 two couple zwei deux dos;
    3 three drei trois tres; 4 four few vier quatre cuatro; 5 five funf cinq cinco;
    6 six sechs seis; 7 seven sieben sept siete; 8 eight acht huit ocho;
    9 nine neun neuf nueve; 10 ten zehn dix diez; 11 eleven elf onze once;
    12 twelve zwolf douze doce
"""
_UNITS: Final = """
    day days tag tage tagen jour jours dia dias;
    week weeks woche wochen semaine semaines semana semanas;
    month months monat monate monaten mois mes meses;
    year years jahr jahre jahren an ans annee annees ano anos;
    weekend wochenende week-end
"""
_MONTHS: Final = """
    january jan januar janner janvier enero; february feb februar fevrier febrero;
    march mar marz mars marzo; april apr avril abril; may mai mayo; june jun juni juin junio;
    july jul juli juillet julio; august aug aout agosto;
    september sep sept septembre septiembre; october oct oktober octobre octubre;
    november nov novembre noviembre; december dec dezember decembre diciembre
"""
_WEEKDAYS: Final = """
    monday montag lundi lunes; tuesday dienstag mardi martes;
    wednesday mittwoch mercredi miercoles; thursday donnerstag jeudi jueves;
    friday freitag vendredi viernes; saturday samstag sonnabend samedi sabado;
    sunday sonntag dimanche domingo
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
    for word in name.replace("'", " ").replace("-", " ").split()
) - {"the", "before", "this", "last", "d", "de", "la", "cette", "por"}
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
_FRENCH_MONTH = (
    r"(?P<month>janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre"
    r"|decembre)"
)
_FRENCH_DAY = r"(?P<weekday>lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
_FRENCH_N = r"(?P<n>\d{1,3}|une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze)"
_FRENCH_UNIT = r"(?P<unit>jours?|semaines?|mois|annees?|ans?)"
_SPANISH_MONTH = (
    r"(?P<month>enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre"
    r"|diciembre)"
)
_SPANISH_DAY = r"(?P<weekday>lunes|martes|miercoles|jueves|viernes|sabado|domingo)"
_SPANISH_N = r"(?P<n>\d{1,3}|una?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce)"
_SPANISH_UNIT = r"(?P<unit>dias?|semanas?|mes(?:es)?|anos?)"

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
    "french": (
        ("hours", (r"(?P<name>ce\s+matin|cet\s+apres-midi|ce\s+soir|cette\s+nuit"
         r"|la\s+nuit\s+derniere|hier\s+(?:matin|apres-midi|soir))")),
        ("day", r"(?P<name>aujourd'hui|avant[\s-]hier|hier)"),
        ("ago", r"il\s+y\s+a\s+" + _FRENCH_N + r"\s+" + _FRENCH_UNIT),
        ("past", r"[cl]es\s+" + _FRENCH_N + r"\s+derni(?:er|ere)s\s+" + _FRENCH_UNIT),
        ("last", (r"(?:la|le|l')\s*(?P<unit>semaine|week-end|mois|annee|an)"
         r"\s+(?:derniere?|passee?)")),
        ("this", r"(?:cette|ce)\s+(?P<unit>semaine|week-end|mois|annee)(?:-ci)?"),
        ("weekday", _FRENCH_DAY + r"\s+(?:dernier|passe)"),
        ("date", r"(?:le\s+)?" + _DAY + r"(?:er)?\s+" + _FRENCH_MONTH + rf"(?:\s+{_YEAR})?"),
        ("last month", r"en\s+" + _FRENCH_MONTH + r"\s+dernier"),
        ("month", r"(?:(?:en|de)\s+)?" + _FRENCH_MONTH + r"\s+" + _YEAR),
        ("month", r"en\s+" + _FRENCH_MONTH),
        ("year", r"en\s+" + _YEAR),
    ),
    "spanish": (
        ("hours", (r"(?P<name>esta\s+(?:manana|tarde|noche)|anoche"
         r"|ayer\s+por\s+la\s+(?:manana|tarde|noche))")),
        ("day", r"(?P<name>hoy|antes\s+de\s+ayer|anteayer|ayer)"),
        ("ago", r"hace\s+" + _SPANISH_N + r"\s+" + _SPANISH_UNIT),
        ("past", r"en\s+l[oa]s\s+ultim[oa]s\s+" + _SPANISH_N + r"\s+" + _SPANISH_UNIT),
        ("last", r"(?:la|el)\s+(?P<unit>semana|mes|ano)\s+pasad[oa]"),
        ("this", r"est[ea]\s+(?P<unit>semana|mes|ano)"),
        ("weekday", r"el\s+(?:pasado\s+)?" + _SPANISH_DAY + r"(?:\s+pasado)?"),
        ("date", r"(?:el\s+)?" + _DAY + r"\s+de\s+" + _SPANISH_MONTH
         + rf"(?:\s+(?:de\s+)?{_YEAR})?"),
        ("last month", r"en\s+" + _SPANISH_MONTH + r"\s+pasado"),
        ("month", r"(?:en\s+)?" + _SPANISH_MONTH + r"\s+(?:de\s+)?" + _YEAR),
        ("month", r"en\s+" + _SPANISH_MONTH),
        ("year", r"en\s+" + _YEAR),
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


_VAGUE: Final = """
    happen happens happened happening talk talked talking discuss discussed chat chatted speak spoke
    spoken say said saying tell told mention mentioned anything everything something thing things
    stuff remember recall recap summary summarize summarise went go going gone
    passiert geschehen los besprochen gesprochen geredet gesagt erzahlt gemacht getan machte tat
    etwas alles
    passe arrive parle discute dit fait raconte chose choses
    paso pasado hablamos hablado hablo dije dijo dicho hice hizo hicimos hecho cosa cosas todo
"""
_ACTIVITY: Final = """
    ask asked asking decide decided promise promised learn learned learnt plan planned suggest
    suggested recommend recommended buy bought get got order ordered eat ate cook cooked meet met
    see saw visit visited read write wrote work worked make made finish finished start started
    fragte gefragt entschieden beschlossen versprochen gelernt geplant empfohlen vorgeschlagen
    gekauft bestellt gegessen gekocht getroffen gesehen besucht gelesen geschrieben gearbeitet
    demande decide promis appris achete mange vu lu ecrit travaille rencontre
    pregunte decidi decidido prometi aprendi compre comprado comi vi lei escribi trabaje conoci
"""
ACTIVITIES: Final = frozenset(_ACTIVITY.split())
"""Words that ask what somebody did at a time; the answer may use other words."""

VAGUE: Final = frozenset(_VAGUE.split())
"""Words that ask for nothing in particular but a time: what happened, what did we talk about."""
