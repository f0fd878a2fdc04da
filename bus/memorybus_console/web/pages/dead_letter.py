"""Shows one dead letter: why it was refused, the traceback, its event, and the events behind it."""

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from memorybus.dead_letters.queue import DeadLetters, LocatedLetter
from memorybus.errors import MissingEvent

from memorybus_console.operations.dead_letters import open_dead_letters
from memorybus_console.views.dead_letters import letter_of
from memorybus_console.views.events import fields_json
from memorybus_console.views.render import json_text
from memorybus_console.web.page import Page, PageRequest
from memorybus_console.web.pages.dead_letters import place_of

_MAX_LETTERS_BEHIND: Final = 20  # how many letters of the same key are shown

_PARTITION = re.compile(r"p(\d{2,6})")
_LETTER = re.compile(r"\d{1,16}-\d{1,16}")


def show(request: PageRequest) -> Mapping[str, Any]:
    """Return a letter, its event as it was published, and the letters that wait behind it."""
    with closing(open_dead_letters(request.settings)) as desk:
        dead = letter_at(request.path, desk)
        published = desk.event(dead)
        following = desk.later_of_key(dead)
    event = published.event
    shown = letter_of(dead, published)
    return {
        "letter": shown,
        "event_place": f"p{dead.partition:02d}:{dead.stored.letter.entry}",
        "published": "" if event is None else json_text(fields_json(event.envelope.event)),
        "edited": "" if shown.edited is None else json_text(shown.edited),
        "following": [
            (place_of(letter), letter.stored.letter) for letter in following[:_MAX_LETTERS_BEHIND]
        ],
        "more": max(0, len(following) - _MAX_LETTERS_BEHIND),
    }


def letter_at(path: Mapping[str, str], desk: DeadLetters) -> LocatedLetter:
    """Return the letter that a path names."""
    partition, letter = _PARTITION.fullmatch(path["partition"]), path["letter"]
    if partition and _LETTER.fullmatch(letter):
        located = desk.letter((path["provider"], int(partition[1])), letter)
        if located is not None:
            return located
    raise MissingEvent("there is no such dead letter any more: it was applied or discarded")


PAGE: Final = Page(
    path="/dead/{provider}/{partition}/{letter}", template="dead_letter.html", show=show
)
