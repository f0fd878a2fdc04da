"""Recognises what a person tells the agent to keep to: orders, preferences, names; pure.

A sentence counts by its form, in English or German:

- an order with a word that makes it stand: "Always …", "Never …", "Please don't …", "From now on
  …", "When I ask about …, show …", "Verwende immer …", "Bitte nie …", "Ab jetzt …";
- a preference of the person: "I prefer …", "I'd rather you …", "Ich bevorzuge …";
- a name: "My name is …", "Call me …", "Ich heiße …".

Questions, quotations, code, texts that are handed over to be read or translated, suppositions ("if
I always …") and long texts are no instructions, and nor is what others say.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from memorybus.events import TurnCompleted

from memorybus_providers.language.query import stems
from memorybus_providers.ranking.asking import asks, statement_of
from memorybus_providers.remembering.notes import NOTE, Note
from memorybus_providers.remembering.utterances import turn_utterances

INSTRUCTION: Final = "instruction"
"""The category of the notes that hold what a person told the agent to keep to."""

MAX_TEXT_CHARS = 1_000
"""A longer text is a document, or tells a story: its sentences are no orders to the agent."""

MAX_CHARS = 300  # a longer sentence is no instruction, but a part of a text

MAX_OF_TEXT = 8  # the most instructions of one text, its first ones (G10)

_MASK = "\N{MIDDLE DOT}"
_APOSTROPHES = str.maketrans("’‘ʼ", "'''")
_NOT_MEANT: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*|^(?: {4}|\t)[^\n]*"
    r"|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|(?<!\w)'[^'\n]*'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
"""Code and quotations."""

_PASTED: Final = re.compile(
    r"^#{1,6} |^(?:from|to|subject|von|an|betreff): ", re.IGNORECASE | re.MULTILINE
)
"""A heading, or the head of an e-mail."""

_HANDED_OVER: Final = re.compile(
    r"\b(?:translate|summari[sz]e|proofread|rewrite|rephrase|paraphrase|correct|edit|explain|review"
    r"|improve|analy[sz]e|reads?|says?|said|told|wrote|writes|called|titled|lyrics|readme|e-?mail"
    r"|letter|article|text|document|docs|policy|contract|guide(?:lines)?|manual|poem|song|story"
    r"|slogan|headline|following|übersetze?|fasse?|korrigiere?|erkläre?|lies|sagte?|schrieb|steht"
    r"|brief|artikel|folgende[nrs]?)\b[^:\n]{0,80}:",
    re.IGNORECASE,
)
"""What follows the colon is the text of which this speaks."""

_SENTENCE: Final = re.compile(r"[^\n]+?(?:[.!?…]+(?=\s|$)|(?=\n)|$)", re.MULTILINE)
_TAG: Final = re.compile(
    r",?\s*(?:ok|okay|right|alright|please|deal|bitte|ja)\s*\?+$", re.IGNORECASE
)
_OPENING = (
    r"(?:[-*•]\s+|\d+[.)]\s+)?(?:(?:please|also|and|but|so|oh|ok|okay|hey|hi|hello|yes|no|just|btw"
    r"|by the way|note|important|remember(?: that)?|keep in mind(?: that)?|one (?:more )?thing"
    r"|bitte|auch|und|aber|also|übrigens|wichtig|merk dir|hallo|ja|nein)\b[\s,:;!–-]*)*"
)
_TO_YOU = (
    r"(?:(?:i(?:'d| would)? (?:want|like|need|expect|prefer) you to|you (?:should|must|can|may)"
    r"|make sure(?: that)?(?: you| to)?|be sure to|remember to|please)\s+)?"
)
_ASKED = (
    r"(?:when|whenever|if|every time|each time)\s+i(?:'m| am| ever)?\s+(?:ask|say|write|request"
    r"|mention|tell|send|give|type|talk|share|paste|want)\w*\b[^,.]{0,80},\s*(?:then\s+|please\s+)*"
)
_FROM_NOW = (
    r"(?:from (?:now|here|today) on(?:wards)?|going forward|in (?:the )?future|henceforth"
    r"|starting (?:now|today))"
)
_AB_JETZT = r"(?:ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|künftig|zukünftig|in zukunft)"
_IMMER = r"(?:immer|nie|niemals|stets|grundsätzlich)"
_NAME = r"[^\W\d_][\w'.-]*"
_CAPITAL_NAME = r"(?-i:[A-ZÄÖÜ])[\w'.-]*"

_HOW = "(?:always|never|only|don't|do not)"
_NO_SUBJECT = r"(?!\s+(?:will|would|can|could|may|might|is|are|was|were|has|have|had)\b)"

_ORDERS: Final = (
    rf"(?:{_ASKED})?{_TO_YOU}(?:always|never)\s+(?P<v1>[\w'-]+)\b{_NO_SUBJECT}",
    rf"{_ASKED}(?P<v2>[\w'-]+)",
    rf"{_FROM_NOW}[\s,:]+{_TO_YOU}(?:{_HOW}\s+)?(?P<v3>[\w'-]+)\b{_NO_SUBJECT}",
    rf"{_TO_YOU}(?:(?:never|only|don't|do not)\s+)?(?P<v4>[\w'-]+)\b.*[\s,]{_FROM_NOW}\W*$",
    r"(?:don't|do not)\s+(?:ever\s+)?(?P<v5>[\w'-]+)\b.*\b(?:again|any ?more|unless|without)\b",
    r"(?P<v6>[\w'-]+)\b.*,\s*always\W*$",
)
_PLEASE_NOT: Final = (
    r"(?:[-*•]\s+)?(?:\w+[\s,]+)?please,?\s+(?:do not|don't|never)\s+(?:ever\s+)?(?P<v7>[\w'-]+)"
)
_COMMANDS = (
    r"(?:antwort|verwend|benutz|nutz|nimm|schreib|erklär|zeig|nenn|frag|sag|gib|mach|lass|halt"
    r"|prüf|test|push|pushe|commit|committe|füg|erwähn|bestätig|beginn|beend|formatier|sprich|red"
    r"|übersetz|vermeid|acht|speicher|lösch|änder|ruf|schick|send|stell|bleib|fass|liefer|begründ"
    r"|zitier|rechn|erinner|duz|siez|lies|hol|leg|setz|warn|wart|lad|bau|führ)(?:e|en sie)?"
)
_GERMAN_ORDERS: Final = (
    rf"{_COMMANDS}\s+(?:[\w-]+\s+){{0,4}}?{_IMMER}\b",
    rf"{_COMMANDS}\b.*\b(?:nicht mehr|nie wieder|kein\w* .*mehr|nicht ohne|nichts? ohne)\b",
    rf"{_IMMER}\s.*(?:en|ern|eln)\W*$",
    rf"{_AB_JETZT}\b[\s,:]*(?:bitte\s+)?(?:{_COMMANDS}|nur|{_IMMER}|kein\w*|nicht mehr)\b",
    rf"{_COMMANDS}\b.*\s{_AB_JETZT}\b",
    rf"du sollst (?:mich |mir )?(?:{_IMMER}|nicht)\b",
    r"ich (?:will|möchte|wünsche mir),? dass (?:du|sie)\b",
)
_BITTE: Final = (
    rf"(?:[-*•]\s+)?bitte,?\s+(?:{_IMMER}|kein\w*|nicht(?! (?:vergess|wunder|bös|bös|erschreck)))\b"
)
_NAMES: Final = (
    rf"(?:you (?:can|may) )?call me {_CAPITAL_NAME}",
    rf"my name(?: is|'s) {_NAME}",
    rf"i(?:'m| am) called {_CAPITAL_NAME}",
    rf"i go by {_CAPITAL_NAME}",
    rf"(?:address|refer to) me as {_NAME}",
    r"my pronouns are\b",
    rf"(?:du kannst mich |sie können mich )?nenn(?:e|en|en sie)? mich {_CAPITAL_NAME}",
    rf"(?:du kannst|sie können) mich {_CAPITAL_NAME} nennen",
    rf"ich hei(?:ß|ss)e {_NAME}",
    rf"mein name ist {_NAME}",
)
_WISHES: Final = re.compile(
    r"\b(?:i(?:'d| would)? (?:(?:really|strongly|much|generally|usually|always|also|personally) )*"
    r"prefer(?! (?:it|its|that|this|them|these|those|not to)\b)\b|i(?:'d| would) rather you\b"
    r"|i (?:really |don't |do not )?(?:like|love|hate) (?:it )?when you\b"
    r"|ich bevorzuge\b|ich ziehe\b[^.,]*\bvor\b|mir (?:ist|sind)\b[^.,]*\blieber\b"
    r"|ich (?:mag|hätte|habe) (?:es )?[^.,]*\blieber\b)",
    re.IGNORECASE,
)
_BEFORE_WISH: Final = re.compile(
    r"(?:^|[,;:.!–-]|\b(?:so|and|but|because|since|as|that|though|while|und|aber|denn))\s*$",
    re.IGNORECASE,
)
_HINTS: Final = (
    "always", "never", "please", "again", "any more", "anymore", "unless", "without", "when",
    "if i", "time i", "from now", "future", "forward", "henceforth", "starting", "from here",
    "from today", "prefer", "rather you", "call me", "my name", "called", "i go by", "me as",
    "pronouns", "bitte", "immer", "nie", "stets", "grundsätzlich", "nicht", "mehr", "ab jetzt",
    "ab sofort", "ab heute", "von nun", "von jetzt", "künftig", "zukunft", "du sollst", "dass du",
    "dass sie", "nenn", "heiß", "heisse", "heiße", "mein name", "bevorzug", "ziehe", "lieber",
)  # fmt: skip
"""A text without any of these has no instruction, and most texts end here."""

_FORMS: Final = re.compile(
    "|".join(
        (
            f"{_OPENING}(?:{'|'.join((*_ORDERS, *_GERMAN_ORDERS, *_NAMES))})",
            _PLEASE_NOT,
            _BITTE,
        )
    ),
    re.IGNORECASE,
)
_NOT_COMMANDING = """
    a an the my your his her its our their this that these those i you he she it we they me him us
    them who what when where why how there here and or but so too as at by for from in into of on
    onto out over to under up with without about after before again ever more less enough not just
    also still maybe perhaps one two much many nothing something anything everyone someone
    been had has have was were is are am did does got gone done seen heard thought felt knew known
    made met said told found left lost kept went came took taken given gave held grown meant bought
    brought caught taught saw began broke built chose drew drove fell flew forgot froze grew led ran
    sat sent sold spoke spent stood threw understood woke won wore wrote ate drank gets goes knows
    wants needs ends seems works fails can could will would shall should may might must
    fun good great nice happy glad sad sorry sure ready open true worth
    mind underestimate forget stop give lose doubt fear worry hesitate expect know realize realise
    let's lets please always never
"""
_NO_COMMANDS: Final = frozenset(_NOT_COMMANDING.split())
"""Words after "always" and "never" with which no order begins: no verbs, or those of proverbs."""

_NO_ENDING: Final = re.compile(r"(?:ing|[^e]ed|ied|ly)$|'(?:s|d|m|re|ve|ll|t)$")
_COMMANDS_IN_ED: Final = frozenset(
    {"embed", "shed", "wed", "apply", "reply", "supply", "rely", "bring"}
)
_MARKING_WORDS = """
    always never not don't dont do please only ever again anymore more from now on future in the a
    an to i i'd you me my it is and prefer rather like love hate when going forward immer nie
    niemals stets nicht kein keine keinen bitte ab jetzt sofort künftig ich mir mich bevorzuge
    lieber der die das ein eine mehr
"""
_MARKERS: Final = frozenset(stem for word in _MARKING_WORDS.split() for stem in stems(word))
"""Words that do not say of what an instruction speaks."""


def instructions_of(event: TurnCompleted) -> list[Note]:
    """Return the notes of what a person told the agent to keep to in a turn."""
    if event.synthetic:
        return []
    said = [utterance.content for utterance in turn_utterances(event) if utterance.kind == "user"]
    return [Note(NOTE, text, INSTRUCTION) for one in said for text in instructions_in(one)]


def instructions_in(text: str) -> list[str]:
    """Return the instructions in what a person said, verbatim, in their order.

    >>> instructions_in("Fine. Never push to main! Do you always test?")
    ['Never push to main!']
    """
    if len(text) > MAX_TEXT_CHARS or not _may_instruct(text) or _PASTED.search(text):
        return []
    return list(islice(dict.fromkeys(_instructions(text)), MAX_OF_TEXT))


def subject_of(instruction: str) -> frozenset[str]:
    """Return of what an instruction speaks: two of the same subject do not hold together.

    "Never push to main" and "Always push to main" speak of the same, and so do two names. Nothing
    else is compared, since two orders that share only some words may both hold.
    """
    if name := re.search("|".join(_NAMES), instruction, re.IGNORECASE):
        return frozenset({"name", *name[0].casefold().split()[:-1]})
    words = frozenset(stems(instruction.translate(_APOSTROPHES)))
    return words - _MARKERS or words


def _instructions(text: str) -> Iterator[str]:
    shown = text.translate(_APOSTROPHES)
    masked = _NOT_MEANT.sub(lambda found: _MASK * len(found[0]), shown)
    if ":" in masked and (handed := _HANDED_OVER.search(masked)):
        masked = masked[: handed.end()]
    for sentence in _SENTENCE.finditer(masked):
        start, end = _span(sentence[0]) if _may_instruct(sentence[0]) else (0, 0)
        if 0 < end - start <= MAX_CHARS:
            first = sentence.start()
            yield " ".join(text[first + start : first + end].split())


def _span(sentence: str) -> tuple[int, int]:
    """Return where the instruction in a sentence begins and ends; nowhere if there is none."""
    told = _TAG.sub("", sentence) if "?" in sentence else sentence
    if not asks(told):
        found = _FORMS.match(told.strip())
        if found and all(map(_may_command, filter(None, found.groupdict().values()))):
            return len(told) - len(told.lstrip()), len(told)
    wish = _WISHES.search(told)
    if wish is None or not _BEFORE_WISH.search(told[: wish.start()]):
        return 0, 0
    end = len(statement_of(told, wish.end()))
    return (wish.start(), end) if end else (0, 0)


def _may_instruct(text: str) -> bool:
    folded = text.casefold()
    return any(hint in folded for hint in _HINTS)


def _may_command(word: str) -> bool:
    """Return whether an order may begin with a word, as far as its form shows."""
    plain = word.casefold()
    if plain in _NO_COMMANDS:
        return False
    return plain in _COMMANDS_IN_ED or not _NO_ENDING.search(plain)
