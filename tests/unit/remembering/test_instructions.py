"""Which sentences of a person tell the agent what to keep to."""

import pytest
from memorybus_providers.remembering.instructions import (
    MAX_OF_TEXT,
    MAX_TEXT_CHARS,
    instructions_in,
    subject_of,
)

INSTRUCTIONS = """
    Always include error codes when I ask about APIs. | Never push to main!
    never deploy on fridays | Please always answer in German. | Always use tabs, ok?
    Please, never call me after 9 pm. | Please don't use emojis.
    please do not touch the migrations | Don't ever delete my branches again
    Don't merge without asking me. | From now on, answer in one paragraph.
    In future use metric units | Keep it short from now on.
    Going forward, please cite your sources | You should always run the tests.
    I want you to always explain your reasoning. | Make sure to never share my address.
    When I ask for a recipe, always use grams. | If I ask about deploys, remind me of the freeze.
    Whenever I send a draft, please check the spelling. | Use British spelling, always.
    - Always sign with my initials | Hey, please remember: never book aisle seats.
    Always format dates as "Month Day, Year" when I ask. | I'd like you to never use passive voice.
    I prefer tea over coffee. | I really prefer dark mode | I'd prefer short answers.
    I'd rather you asked first. | I don't like it when you apologise.
    Remember that I prefer window seats. | Call me Nita. | My name is Nora Vale. | my name's nora
    You can call me Dr. Vale. | I go by Ro. | My pronouns are they/them. | I'm called Ole.
    Antworte immer auf Deutsch. | Bitte nie auf main pushen. | Bitte keine Emojis.
    Verwende stets Tabs! | Ab jetzt bitte nur noch kurze Antworten.
    Schreib mir ab sofort auf Deutsch | Niemals ohne Tests pushen. | Pushe nie auf main.
    Ich möchte, dass du immer nachfragst. | Du sollst mich nie siezen.
    Ich bevorzuge vegetarische Rezepte. | Mir ist der frühe Zug lieber. | Nenn mich Nita.
    Ich heiße Nora. | Mein Name ist Nora. | Frag bitte immer nach, bevor du etwas löschst.
"""

OTHERS = """
    Do you always answer in German? | Should I never push to main? | Can you call me Nita?
    Always? | If I always pushed to main, things would break. | What if I never answer?
    Never mind. | Never again! | Always happy to help. | Always a pleasure.
    Never saw this coming. | Never been there. | Always. | She always says never push to main.
    My boss said always use tabs. | I always drink tea. | I never eat meat. | They call me Nita.
    Call me later. | call me tomorrow at 5 | Don't worry! | He told me: never push to main.
    "Always use tabs" is in the guide. | The rule is `never push`.
    Translate to German: Never push to main. | Summarise this text: Always wear a helmet.
    From now on I'm going to run every day. | From now on we meet on Mondays.
    In the future cars will fly. | In future there may be more. | Do you think I prefer tea?
    If I prefer tea, what do I buy? | Never underestimate the sea. | Never give up.
    Don't forget the milk. | Let's never speak of it. | Anna kommt immer zu spät.
    Ich gehe immer um acht. | Soll ich immer fragen? | Immer wieder schön.
    Meine Frau kocht immer. | Nie wieder! | Bitte nicht vergessen! | Wenn ich immer Zeit hätte!
    I prefer that. | It is always sunny | Is my name Nora? | Whose name is Nora?
"""


def sentences(table: str) -> list[str]:
    """Return the sentences of a table."""
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


def test_an_order_that_stands_a_preference_or_a_name_is_an_instruction():
    """A sentence that tells the agent what to keep to is recognised, in English and German."""
    for text in sentences(INSTRUCTIONS):
        alone = instructions_in(text)
        assert [one in text for one in alone] == [True], text
        assert instructions_in(f"Here is my week. {text}\nThanks!") == alone, text


DOCUMENTS = [
    "```\n# Always close files.\nAlways close files.\n```",
    "> Never push to main.\nI disagree with that.",
    "# Rules\n\nAlways wear gloves.\nNever run.",
    "Subject: rules\n\nAlways wear gloves.",
    "Please proofread my email:\n\nHi all,\nNever park in front of the gate.\nAlways knock.",
    "“Never push to main.”",
    "Always wear gloves. " + "The pump hums. " * (MAX_TEXT_CHARS // 15),
]


def test_other_sentences_are_no_instructions():
    """Questions, proverbs, plans, habits, what others say and what a person only shows are none."""
    texts = [*sentences(OTHERS), *DOCUMENTS]
    assert {text: found for text in texts if (found := instructions_in(text))} == {}


def test_a_wish_is_kept_without_the_question_after_it():
    """Of a sentence that tells a preference and then asks, the preference alone is kept."""
    text = "I'm torn, so I prefer e-books for travel, can you suggest some?"
    assert instructions_in(text) == ["I prefer e-books for travel"]


def test_a_text_has_a_bounded_number_of_instructions():
    """G10: only the first instructions of a text are kept."""
    rules = [f"Always water plant {number}." for number in range(MAX_OF_TEXT + 3)]
    assert instructions_in("\n".join(rules)) == rules[:MAX_OF_TEXT]


@pytest.mark.parametrize(
    ("older", "newer", "same"),
    [
        ("Never push to main.", "Always push to main!", True),
        ("Please don't use emojis", "From now on always use emojis.", True),
        ("Call me Bob.", "Call me Rob.", True),
        ("My name is Nora Vale", "my name is Nora Quist", True),
        ("Call me Nora.", "My name is Eleonora.", False),
        ("Never push to main.", "Never push to production.", False),
        ("Never push to main.", "Never push to main on Fridays.", False),
        ("Always answer in German.", "Always use tabs.", False),
        ("Bitte nie duzen.", "Bitte immer duzen.", True),
        ("我喜欢茶", "我喜欢咖啡", False),
    ],
)
def test_two_wordings_speak_of_the_same_only_if_their_words_are_the_same(older, newer, *, same):
    """A newer wording ends an older one only if both speak of the same thing."""
    assert (subject_of(older) == subject_of(newer)) is same
