"""Recognises prompts that only refer to an earlier prompt: "and when was that?"; pure.

Such a prompt names nothing that memory could search for. So it is asked together with the last
prompt that can be understood by itself.
"""

import re
from typing import Final

_FUNCTION_WORDS = """
    a about actually after again ago all already also an and another any are at back be because been
    before both but by can could d did do does done earlier else ever exactly far few first for from
    had has have here how i if in into is just last later less ll long longer m many may me mean
    might more most much my next no not now of often old on only or other our out over own re really
    s same since so some soon still such t than the then there these this till to too until up
    us ve was we were what when where which while who whom whose why will with would you your
    aber andere anderen auch da dann das dem den denn der die dies diese dort ein eine hat hatte
    haben ist jetzt lange mehr noch nochmal oder oft sind und viel viele von wann war waren warum
    was welche welcher welches wer wie wieso wo
    autre avait c ce cette combien d de en encore est et eu l la le les là mais maintenant ou où
    plus pourquoi quand quel quelle qui quoi s sont t un une y était
    ahora ahí al allí cuál cuándo cuánta cuántas cuánto cuántos de del dónde el entonces era es
    eran esta este fue fueron las les lo los más o otra otro pero por qué quién son un una
    agora ainda allora altra altro che chi com cosa da do dove e então era foi ma mas mais o onde
    ora os outro outra perché più poi porque qual quale quando quanta quante quanti quanto quello
    quem questa questo quê sono são um uma lá lì è é
    daar dan dat de dit een en het hoe hoeveel maar meer nog nu waar waarom wanneer wat welke wie
    zijn
"""
_FUNCTION: Final = frozenset(_FUNCTION_WORDS.split())
"""Words that say nothing by themselves."""

_POINTING_WORDS = """
    he her hers him his it its one ones she that their theirs them they those
    dafür damit darüber davon dazu er es ihm ihn ihr ihre sein seine sie
    cela elle elles il ils leur lui ça
    ella ellas ello ellos eso esto su él
    ela ele elas eles isso isto lei loro lui
    haar hem hij ze zij
"""
_POINTING: Final = frozenset(_POINTING_WORDS.split())
"""Words that stand for something or somebody named before."""

_PERSON_WORDS = "he her him she er ihm ihn sie elle il lui él ella lei ela ele hij hem zij"
_PERSONS: Final = frozenset(_PERSON_WORDS.split())
"""Words that stand for somebody: with one, a prompt may have more other words and still refer back.
"""

_MEANINGLESS: Final = _FUNCTION | _POINTING

_MAX_PROMPT_CHARS = 50
_MAX_TOPIC_CHARS = 500
"""The most characters of a prompt that may refer back, and of the topic that is asked with it."""

_MAX_TELLING_WORDS = 2
"""The most words with a meaning of their own in a prompt that refers back."""

_END_SIGNS = " ?!."
_WORD = re.compile(r"[^\W_]+")


def points_back(prompt: str) -> bool:
    """Say whether a prompt refers to an earlier one.

    It does if it has no word with a meaning of its own ("how much was it?"), or only one together
    with a word that stands for something else ("is that red?"), or at most two together with a word
    that stands for somebody ("does she have a phone number?").
    """
    if len(prompt) > _MAX_PROMPT_CHARS:
        return False
    words = prompt.casefold().rstrip(_END_SIGNS).split()
    telling = plain = 0
    for word in words:
        if word.isalpha():
            plain += 1
            if word not in _MEANINGLESS:
                telling += 1
                if telling > _MAX_TELLING_WORDS:  # nearly every prompt ends here
                    return False
    if plain < len(words):
        words = _WORD.findall(prompt.casefold())
        telling = sum(word not in _MEANINGLESS for word in words)
    most = (
        0
        if _POINTING.isdisjoint(words)
        else 1
        if _PERSONS.isdisjoint(words)
        else _MAX_TELLING_WORDS
    )
    return bool(words) and telling <= most


def with_topic(prompt: str, topic: str) -> str:
    """Return a prompt that refers back, together with the prompt to which it refers.

    Args:
        prompt: what the person said.
        topic: the last prompt that can be understood by itself, or "".
    """
    return f"{topic[:_MAX_TOPIC_CHARS]}\n{prompt}" if topic else prompt
