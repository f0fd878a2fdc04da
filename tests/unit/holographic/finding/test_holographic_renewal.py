"""What changed comes before what it changed."""

import pytest
from memorybus.events import Event
from memorybus_providers.holographic import HolographicProvider
from unit.holographic.holographic_feeding import AT, DAY, add, feed, texts, turn

OLD = "The choir rehearsal with the new organ starts at 18:00 in the parish hall"


def tell(provider: HolographicProvider, *events: Event) -> None:
    """Tell one thing a day, each in a session of its own."""
    for n, event in enumerate(events, start=1):
        feed(provider, [event], first=n, session=f"s{n}", root=f"s{n}", at=AT + n * DAY)


@pytest.mark.parametrize(
    "newer",
    [
        turn("Choir rehearsal begins at 19:30 now, still in the parish hall"),
        turn("They moved the choir rehearsal to 19:30, same parish hall"),
        turn("La choir rehearsal in the parish hall es ahora a las 19:30"),
        add("Choir rehearsal in the parish hall: 19:30"),
    ],
)
def test_a_newer_statement_that_tells_a_change_comes_first(
    newer: Event, provider: HolographicProvider
) -> None:
    """However many more words of the question the older one contains, both are given."""
    tell(provider, turn(OLD), newer)
    found = texts(provider, "When does the choir rehearsal start in the parish hall?")
    assert "19:30" in found[0]
    assert OLD in found


@pytest.mark.parametrize(
    ("events", "question"),
    [
        ([turn("Choir rehearsal begins at 17:00 now, in the parish hall"), turn(OLD)], "When?"),
        ([turn(OLD), turn("The choir rehearsal of the parish hall was loud")], "When?"),
        ([turn(OLD), turn("Now the hall has a new roof")], "When?"),
        ([turn(OLD), turn("Choir rehearsal begins at 19:30 now, in the parish hall")], "Before?"),
    ],
)
def test_what_changed_nothing_keeps_its_place(
    events: list[Event], question: str, provider: HolographicProvider
) -> None:
    """An older, an unchanged and an unrelated statement, and a question for what was so before."""
    tell(provider, *events)
    asked = f"{question} When did the choir rehearsal with the organ start in the parish hall?"
    assert texts(provider, asked)[0] == OLD
