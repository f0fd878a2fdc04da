"""The contract of derivers as tests: subclass `DeriverContract`, and return a new deriver."""

from collections.abc import Iterator

from memorybus.events import SessionRef
from memorybus.ids import derived_id

from memorybus_providers.contract.rules import require
from memorybus_providers.contract.samples import AT, HERE, HOSTILE_TEXTS, SESSION
from memorybus_providers.deriving.deriver import Deriver, Due, Material, Passage, check

DUE = Due(derived_id("contract", "cause"), AT, HERE, SESSION)

_TALK = (
    ("user", "I moved to Bergen in May and work at the harbour office now."),
    ("assistant", "Bergen is rainy; the harbour office is near the fish market."),
    ("user", "Ok."),
    ("user", "Never send me mails before nine in the morning."),
)


def passages(*talk: tuple[str, str]) -> tuple[Passage, ...]:
    """Return what was said in turn, each from an event of its own."""
    return tuple(
        Passage(derived_id("contract", number), text, speaker, AT + number, speaker)
        for number, (speaker, text) in enumerate(talk)
    )


class DeriverContract:
    """The rules of every deriver. A deriver that asks a model gets a scripted one in its tests."""

    def make_deriver(self) -> Deriver:
        """Return a new deriver."""
        raise NotImplementedError

    def test_has_a_name_and_a_revision(self) -> None:
        """Conclusions name who derived them, and which version of it."""
        deriver = self.make_deriver()
        require(deriver.name and deriver.revision, "name and revision must not be empty")

    def test_concludes_from_a_conversation(self) -> None:
        """Something follows from a conversation, and all of it may be published."""
        material = Material(DUE, passages(*_TALK))
        conclusions = self.make_deriver().derive(material)
        require(conclusions, "a conversation leads to no conclusion")
        require(check(conclusions, material) == list(conclusions), f"not all valid: {conclusions}")

    def test_the_same_material_gives_the_same_conclusions(self) -> None:
        """A cause that is derived again leads to the same events."""
        material = Material(DUE, passages(*_TALK))
        first, again = (self.make_deriver().derive(material) for _ in range(2))
        require(first == again, f"{first} and then {again}")

    def test_nothing_follows_from_nothing(self) -> None:
        """A session in which nothing was said has no conclusion."""
        require(not self.make_deriver().derive(Material(DUE, ())), "concluded from nothing")

    def test_hostile_texts_are_data(self) -> None:
        """Any text may be said: conclusions of it are valid, and nothing is raised."""
        for material in _hostile():
            conclusions = self.make_deriver().derive(material)
            require(
                check(conclusions, material) == list(conclusions), f"not valid: {conclusions!r}"
            )


def _hostile() -> Iterator[Material]:
    for text in HOSTILE_TEXTS:
        said = passages(("user", text), ("assistant", text))
        yield Material(DUE, said, essentials=said)
    named = SessionRef(id=HOSTILE_TEXTS[2], root=HOSTILE_TEXTS[2])
    yield Material(Due(DUE.cause, AT, HERE, named), passages(*_TALK))
