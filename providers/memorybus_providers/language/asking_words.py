"""Words with which a person asks an assistant for memories, and which say nothing of what.

"Can you list, in order, what I mentioned throughout our conversations about the budget" asks for
the budget. The other words stand in many texts, and would find those. A question of which only a
time is left asks for what happened then.
"""

from typing import Final

from memorybus_providers.language.languages import stems_of

_WORDS = """
    mention discuss discussion conversation chat talk bring list summary summarize summarise recap
    overview tell explain walk give help remind remember recall show say ask share describe
    recommend suggest different various specific aspect item across throughout session question
    include including know order happen anything everything something thing stuff speak go
    passiert geschehen los besprochen gesprochen geredet gesagt erzahlt gemacht getan machte tat
    etwas alles
"""

_STEMS: Final = frozenset(stem for word in _WORDS.split() for stem in stems_of(word, ("english",)))


def is_asking_word(word: str) -> bool:
    """Tell whether a folded word is a form of one of these."""
    return bool(word) and not _STEMS.isdisjoint(stems_of(word, ("english",)))
