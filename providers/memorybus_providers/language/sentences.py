"""Finds the sentences of a prompt that ask for something; the others are context; pure.

People often tell an agent a story and ask one thing in it. Memory has to answer only this question;
the words around it are less important.
"""

import re
from itertools import compress
from typing import Final, NamedTuple

_SHORT = r"(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]\.)(?<!\b[A-Z][a-z]{2}\.)(?<!\bProf\.)(?<!\b\w\.\w\.)"
_END = re.compile(rf"(?<=[.!?…;؟]){_SHORT}[\"'”’»)\]]*\s+|(?<=[。！？])|\n+")
"""The end of a sentence, but not after what may be an initial or a short title ("Dr.")."""

_QUESTION = re.compile(r"[?？؟][\s!.\"'”’»)\]]*$")
_OPENING = re.compile(r"\w+")
_REQUEST = re.compile(r"\W*(?:(?:can|could|will|would) you |please |bitte )*(\w+)", re.IGNORECASE)

_ASKING_WORDS = """
    what when where who whom whose why which how did does do is are was were has have had can could
    will would shall should may
    please tell remind show give find list write draft send email mail text call book order buy
    plan help make create add change update check look search explain summarise summarize compare
    recommend suggest remember recall prepare schedule cancel translate
    was wann wo wer wen wem wessen warum wieso weshalb welche welcher welches wie hat haben ist sind
    kannst könntest bitte sag sage erinnere zeig zeige gib finde schreib schreibe schick such suche
    buche bestelle hilf mach
    que quoi quand où qui pourquoi quel quelle quels quelles comment combien peux pourrais est-ce
    rappelle montre donne trouve écris envoie cherche réserve aide fais dis
    qué cuándo dónde quién quiénes cuál cuáles cómo cuánto cuánta cuántos cuántas puedes podrías
    dime recuérdame muestra muéstrame dame encuentra escribe envía busca reserva ayuda haz
    che cosa quando dove chi perché quale quali come quanto quanti puoi potresti dimmi ricordami
    mostrami dammi trova scrivi manda cerca prenota aiutami fai
    quem onde quando porque qual quais como quanto quantos pode poderia diga lembra mostre encontre
    escreva envie procure reserve ajude faça
    wat wanneer waar wie waarom welk welke hoe kun kan zeg herinner toon geef vind schrijf stuur
    zoek boek help maak
"""
_ASKING: Final = frozenset(_ASKING_WORDS.split())  # words with which questions and requests begin

_MIN_SPLIT_CHARS = 60
"""A prompt of at least this many characters may contain more than its question."""


class SplitPrompt(NamedTuple):
    """A prompt in two parts."""

    asked: str  # the sentences that ask, in their order; the whole text if all do or none does
    aside: str = ""  # the other sentences


def split_prompt(text: str) -> SplitPrompt:
    """Return the sentences of a prompt that ask, those with a question mark, and the others.

    If there are none, the sentences that begin like a question or a request are taken.
    """
    if len(text) < _MIN_SPLIT_CHARS:
        return SplitPrompt(text)
    parts = sentences(text)
    asking = [bool(_QUESTION.search(part)) for part in parts]
    if not any(asking):
        asking = [_begins_asking(part) for part in parts]
    if all(asking) or not any(asking):
        return SplitPrompt(text)
    return SplitPrompt(
        "\n".join(compress(parts, asking)),
        "\n".join(compress(parts, (not one for one in asking))),
    )


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are not blank."""
    return [one for one in _END.split(text) if one and not one.isspace()]


def requests_of(asked: str) -> frozenset[str]:
    """Return the words with which requests begin, in small letters: "Write an email to …".

    They name what the agent shall do, and would find other texts that it was to write.
    """
    opened = (_REQUEST.match(sentence) for sentence in sentences(asked))
    return _ASKING.intersection(found[1].casefold() for found in opened if found)


def _begins_asking(sentence: str) -> bool:
    found = _OPENING.search(sentence.casefold())
    return found is not None and found[0] in _ASKING
