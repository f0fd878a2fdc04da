"""The conversation that ``memorybus demo`` plays: our own writing, two sessions, one night apart.

A lighthouse keeper restores an old lens with an agent's help. The steps cover everything an agent
publishes: turns, memory writes (add, replace, remove), a branch, a compression, a delegation and
the end of a session.
"""

from typing import Literal

import msgspec

AGENT = "harbour"
USER = "Maren"
PERSON = "Maren"
ASSISTANT = "Pilot"
QUESTION = "Which bearing grease did we choose for the lens, and when does the inspector come?"


class Say(msgspec.Struct, frozen=True):
    """A turn."""

    user: str
    assistant: str


class Remember(msgspec.Struct, frozen=True):
    """A memory write."""

    action: Literal["add", "replace", "remove"]
    content: str = ""
    old_text: str = ""
    store: Literal["memory", "user"] = "user"


class Branch(msgspec.Struct, frozen=True):
    """The conversation forks; the next steps belong to the branch until `Return`."""

    title: str


class Return(msgspec.Struct, frozen=True):
    """Back to where the branch left."""


class Compress(msgspec.Struct, frozen=True):
    """The context window is full: what leaves it, and on under a new epoch."""

    count: int


class Delegate(msgspec.Struct, frozen=True):
    """A sub-agent did something."""

    task: str
    result: str


class End(msgspec.Struct, frozen=True):
    """The session is over."""

    reason: str


Step = Say | Remember | Branch | Return | Compress | Delegate | End


class Act(msgspec.Struct, frozen=True):
    """One session of the play."""

    title: str
    steps: tuple[Step, ...]


EVENING = Act(
    "The lens that would not turn",
    (
        Say(
            "Evening. The big lens at Skarvholm stuck again at 40 degrees. Four tonnes of glass, "
            "and it groans like a whale.",
            "A whale at 40 degrees every time, or wherever it stops? Always the same spot points "
            "to the race it floats on rather than to the clockwork.",
        ),
        Say(
            "Always the same spot. And there are fine silver flakes in the drip tray.",
            "Then a roller is shedding. Stop driving it by motor tonight: each pass cuts the track "
            "deeper. Can you turn it by hand while you look?",
        ),
        Remember("add", "Maren keeps the lighthouse at Skarvholm and restores its 1887 lens."),
        Say(
            "By hand, with my nephew Jory pushing. Roller number seven has a flat the size of a "
            "fingernail.",
            "Roller seven it is. Mark it with chalk, photograph the flat beside a ruler, and count "
            "how many of the twelve still ring when you tap them.",
        ),
        Say(
            "Eleven ring like bells, seven goes thud. Which grease do I put on when it is back? "
            "The log of 1951 says mutton tallow, I kid you not.",
            "Tallow goes rancid and eats the bronze. A calcium sulfonate grease stands salt water "
            "and leaves the bronze alone.",
        ),
        Remember("add", "The lens bearing gets lithium grease.", store="memory"),
        Say(
            "Wait, the chandler has both sorts. Decide for me: lithium or calcium sulfonate?",
            "Calcium sulfonate grease for the lens bearing. Lithium washes out in spray; I noted "
            "it wrongly a moment ago and correct that now.",
        ),
        Remember(
            "replace",
            "The lens bearing gets calcium sulfonate grease, not lithium: spray washes lithium "
            "out.",
            old_text="lithium grease",
            store="memory",
        ),
        Branch("What if we cast a new roller?"),
        Say(
            "Thought experiment: could the foundry in Varde cast a new roller instead of turning "
            "this one down?",
            "They could, in phosphor bronze, in about three weeks. You would want all twelve "
            "measured first, or the new one carries the whole lamp alone.",
        ),
        Return(),
        Delegate(
            "Find who turns a 94 mm bronze roller within the week",
            "Ottesen's workshop in Hamn has a free lathe on Thursday; 94 mm is fine, he wants the "
            "roller by Wednesday evening.",
        ),
        Say(
            "Ottesen! He built my father's boat. I will take the ferry on Wednesday.",
            "The last ferry to Hamn leaves at 16:20 on Wednesdays. Pack the roller in the wool "
            "blanket, flat side up.",
        ),
        Compress(1),
        Say(
            "One more: the inspector wrote. She comes on the 3rd of December at nine, and she "
            "wants to see the lens go round.",
            "The inspector comes on 3 December at 09:00. With the roller back by Friday you have a "
            "week of slow turning before she stands in the lantern room.",
        ),
        Remember("add", "The inspector visits Skarvholm on 3 December at 09:00.", store="memory"),
        Remember("add", "Until further notice the lens is turned by hand."),
        End("bedtime"),
    ),
)

MORNING = Act(
    "Back from Hamn",
    (
        Say(
            "Good morning. Ottesen took off half a millimetre and would only accept coffee for it.",
            "Half a millimetre on one roller: then it sits lower than its eleven siblings. Did he "
            "give you a shim?",
        ),
        Say(
            "A brass shim, 0.5 mm, and a lecture. It is in. Jory and I packed the race with the "
            "new grease and she turned like a planet.",
            "Like a planet is exactly right: a full turn should take eight minutes. Let the motor "
            "have it at the slowest notch and listen at 40 degrees.",
        ),
        Remember("remove", old_text="turned by hand"),
        Say(
            "Silence at 40 degrees. Eight minutes and four seconds a turn. I could cry.",
            "Cry away from the prisms, salt is salt. Write the four seconds into the log: the "
            "keeper of 1951 would want to know.",
        ),
        Say(
            "Done: 'No tallow was used.' Jory signed too, he is nine and very proud.",
            "Then the lamp has two keepers. I will remember Jory's signature with the date.",
        ),
        Remember("add", "Maren's nephew Jory, nine, helped to mend the lens and signed the log."),
        End("the lamp is lit"),
    ),
)

ACTS = (EVENING, MORNING)
