"""Recall and memories on the page: what a prompt gets, what is kept of whom, one memory changed."""

import html
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.published import published
from helpers.stories.scenario import PATIENT
from helpers.stories.world import World, standing_world
from helpers.web.hostile import HOSTILE, elements
from helpers.web.pages import HASH, Visitor, looked_at, served
from memorybus.config.settings import Settings
from memorybus.events import OperatorActed
from memorybus_console.operations.preview import Asker, preview_prompt

pytestmark = pytest.mark.timeout(240)

WAIT_SECONDS = 60.0
BOTH = ("builtin", "holographic")
SURE: Any = {**PATIENT, "recall_timeout": 30.0, "prefetch_wait": 20.0}
ENTRY, SAID = "Ana likes the heron.", "I saw a heron by the boathouse."
QUESTION = "Where was the heron by the boathouse?"


def remembering(world: World) -> None:
    """Publish what the tests look for, and wait until it is applied and recalled.

    What una has, a test changes.
    """
    with world.bus() as bus:
        for user in ("ana", "una"):
            session = bus.session(f"s-{user}", user=user, warm=False)
            session.turn_completed(SAID, "Noted.", ordinal=0)
            session.memory_written("add", ENTRY, store="user")
        for text in HOSTILE:
            name = text.encode(errors="replace").decode()  # an id that nobody refuses
            hostile = bus.session(f"s {name}", user=f"eve {name}", warm=False)
            hostile.turn_completed(f"heron {text}", text, ordinal=0, user_name=text)
            hostile.memory_written("add", f"heron {text}", store="user")
        assert bus.flush("logged", WAIT_SECONDS)
    world.wait_applied()
    asked = partial(preview_prompt, world.settings, QUESTION, Asker(user="ana"))
    wait_until(lambda: asked().block, "it is recalled", WAIT_SECONDS)


@pytest.fixture(name="guarded", scope="module")
def _guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    logs, more = tmp_path_factory.mktemp("logs"), {"providers": BOTH, "page_token": HASH, **SURE}
    with standing_world(logs, **more) as world:
        world.worker()
        remembering(world)
        yield world.settings


@pytest.fixture(name="visitor")
def _visitor(guarded: Settings) -> Iterator[Visitor]:
    """Return somebody who is signed in."""
    with served(guarded) as visitor:
        visitor.sign_in("ann")
        yield visitor


def answer(visitor: Visitor, page: str) -> str:
    """Return the answer that a page of recall asks for."""
    shown = visitor.get(page).text
    [where] = re.findall(r'hx-get="(/recall/answer[^"]*)"', shown)
    return visitor.get(html.unescape(where)).text


def links(text: str, label: str) -> list[str]:
    """Return where the links of a label lead."""
    return [html.unescape(one) for one in re.findall(rf'<a href="([^"]*)"[^>]*>{label}', text)]


def kept(visitor: Visitor, user: str, provider: str) -> str:
    """Return the page of what a provider keeps of a person."""
    page = visitor.get(f"/memories/kept?user={user}&provider={provider}")
    assert page.status == 200, page.text
    return page.text


def test_a_prompt_is_asked_as_a_person(guarded, visitor):
    """The block on the page is the very block; each memory says why and leads to its event."""
    text = answer(visitor, "/recall?user=ana&q=Where+was+the+heron+by+the+boathouse%3F")
    block = preview_prompt(guarded, QUESTION, Asker(user="ana")).block
    [shown] = re.findall(r'<pre id="block"[^>]*>(.*?)</pre>', text, re.DOTALL)
    assert html.unescape(shown) == block
    assert "in time" in text
    assert "score " in text
    events = set(links(text, "its event"))
    assert "window.pwned" not in text
    places = [visitor.get(one).headers["location"] for one in events]
    assert any(SAID in visitor.get(one).text for one in places)
    strange = visitor.get("/memories/event?event=" + "ab" * 16 + "&at=1&user=ana&session=s")
    assert strange.headers["location"] == "/events?q=" + "ab" * 16
    assert "Small talk: no recall" in answer(visitor, "/recall?user=ana&q=ok+thanks")
    assert "hx-get" not in visitor.get("/recall").text, "nobody is asked before somebody asks"


def test_people_lead_to_their_memories_and_those_to_events(visitor):
    """From a name to what each provider keeps of it, and from there to the event."""
    people = visitor.get("/memories?name=ana").text
    found = re.findall(r'href="(/memories/kept[^"]*)"', people)
    assert len(found) == len(BOTH)
    for where in map(html.unescape, found):
        page = visitor.get(where).text
        assert ENTRY in page
        assert "window.pwned" not in page
        [event, *_] = links(page, "its event")
        place = visitor.get(event).headers["location"]
        assert re.fullmatch(r"/events/p\d\d%3A\d+-\d+", place)
        assert "Outcomes" in visitor.get(place).text
    assert SAID in kept(visitor, "ana", "holographic")
    assert SAID not in visitor.get("/memories/kept?user=ana&provider=holographic&q=likes").text
    assert "there is no provider" in kept(visitor, "ana", "nobody")


def test_a_memory_is_put_right_and_another_deleted(visitor, guarded):
    """First what would happen, then events; the log has who did it and why."""
    [where] = links(kept(visitor, "una", "builtin"), "Correct…")
    plan = visitor.get(where).text
    assert "replaces the entry" in plan
    given = form(plan) | {"content": "Ana likes the owl.", "why": "she said so"}
    done = visitor.post("/memories/correct", given)
    assert done.status == 303, done.text
    assert "the memory is corrected" in visitor.get(done.headers["location"]).text
    for name in BOTH:
        assert "Ana likes the owl." in kept(visitor, "una", name)
    page = kept(visitor, "una", "holographic")
    where = next(one for one in links(page, "Delete…") if "forgets" in visitor.get(one).text)
    plan = visitor.get(where).text
    assert "TurnCompleted" in plan
    done = visitor.post("/memories/delete", form(plan) | {"why": "a mistake"})
    assert done.status == 303, done.text
    assert SAID not in kept(visitor, "una", "holographic")
    assert visitor.get(where).status == 404, "it is there no more"
    told = published(guarded, OperatorActed)
    assert [(one.act, one.operator, one.reason) for one in told] == [
        ("correct memory", "ann", "she said so"),
        ("delete memory", "ann", "a mistake"),
    ]
    assert not any("owl" in str(one.about) or "heron" in str(one.about) for one in told)


def form(page: str) -> dict[str, str]:
    """Return the hidden fields of the act on a page."""
    [found] = re.findall(r'<form class="act".*?</form>', page, re.DOTALL)
    fields = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', found)
    return {name: html.unescape(value) for name, value in fields}


def test_memories_of_anybody_stay_text(visitor):
    """Markup in memories and names makes no element in any of the views."""
    calm = elements(visitor.get("/memories?name=ana").text)
    assert elements(visitor.get("/memories?name=eve").text) <= calm
    plain = elements(kept(visitor, "ana", "holographic"))
    quiet = elements(answer(visitor, f"/recall?user=ana&q={QUESTION.replace(' ', '+')}"))
    people = visitor.get("/memories?name=eve").text
    for where in map(html.unescape, re.findall(r'href="(/memories/kept[^"]*)"', people)):
        page = visitor.get(where).text
        assert "heron " in page
        assert elements(page) <= plain
        user = re.findall(r"user=([^&]*)", where)[0]
        assert elements(answer(visitor, f"/recall?user={user}&q=heron")) <= quiet
        for change in links(page, "Delete…"):
            assert "<script>window" not in visitor.get(change).text


def test_who_is_not_signed_in_sees_nothing_and_changes_nothing(guarded, visitor):
    """Memories are shown to nobody without the token; without it nobody changes any."""
    del visitor.headers["Cookie"]
    for path in ("/recall", "/recall/answer?q=heron", "/memories", "/memories/kept?user=ana"):
        assert visitor.get(path).status == 303
    assert visitor.post("/memories/delete", {"why": "x", "event": "0" * 32}).status == 403


def test_without_a_worker_the_views_say_what_to_start(settings):
    """A bus that nobody serves: the views open, and name the remedy."""
    with looked_at(settings) as visitor:
        assert "memorybus up" in answer(visitor, "/recall?q=heron")
        assert "No memories." in visitor.get("/memories").text
        found = visitor.get("/memories/kept?user=ana")
    assert "memorybus up" in found.text
