"""The views of dead letters with a real worker: looked at, planned, and dealt with."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.providers.recording import texts
from helpers.stories.published import published
from helpers.stories.scenario import NAME, PATIENT, home, recorded, say, thread_worker
from helpers.web.hostile import HOSTILE, elements
from helpers.web.letters import letters, put_aside
from helpers.web.pages import HASH, Answer, Visitor, served
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import DeadLetterResolved, OperatorActed

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(name="parked")
def _parked(make_settings: MakeSettings, redis_url: str, flag: Path) -> Iterator[Settings]:
    """Return settings with two parked keys, of which one has two more events, and a worker."""
    settings = make_settings(
        url=redis_url, partitions=2, page_token=HASH, **PATIENT, **recorded("Keyed")
    )
    with MemoryBus.connect(settings) as bus:
        say(bus, "s-1", f"!permanent={flag} one", "behind 1", "behind 2")
        say(bus, "s-2", f"!permanent={flag} two")
        assert bus.flush()
    with thread_worker(settings):
        wait_until(lambda: len(letters(settings, NAME)) == 4, "the events are parked")
        yield settings


@pytest.fixture(name="ann")
def _ann(parked: Settings) -> Iterator[Visitor]:
    """Return somebody who may act on its page."""
    with served(parked) as visitor:
        visitor.sign_in("ann")
        yield visitor


def links(text: str, begin: str) -> list[str]:
    """Return the links of a page that begin so."""
    found = re.findall(rf'href="({re.escape(begin)}[^"]*)"', text)
    return [html.unescape(one) for one in dict.fromkeys(found)]


def act(visitor: Visitor, path: str, plan: str, **fields: str) -> str:
    """Send the form of a plan as a browser does; return what is said then."""
    answer = send(visitor, path, plan, **fields)
    assert answer.status == 303, answer.text
    shown = visitor.get(answer.headers["location"]).text
    return html.unescape(re.findall(r'<p class="flash" role="status">(.*?)</p>', shown)[0])


def send(visitor: Visitor, path: str, plan: str, **fields: str) -> Answer:
    """Send the form of a plan as a browser does."""
    page = visitor.get(plan).text
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    form = {name: html.unescape(value) for name, value in hidden} | fields
    return visitor.post(path, form)


def test_letters_are_shown_by_error_and_by_key(ann):
    """G6: why, how often, and what waits behind, for each error and for each key."""
    page = ann.get("/dead").text
    by_error, by_key = page.split("<h2>By key</h2>")
    assert by_error.count("<tr><td data-label=") == 1
    counts = re.findall(r'data-label="(keys|refused|waiting)">(\d+)<', by_error)
    assert counts == [("keys", "2"), ("refused", "2"), ("waiting", "4")]
    assert by_key.count("<tr><td data-label=") == 2
    (error,) = links(page, "/dead?error=")
    assert ann.get(error).text.count("<tr><td data-label=") == 3
    assert "<tr><td data-label=" not in ann.get("/dead?provider=nobody").text


def test_a_letter_tells_what_waits_behind_it(parked, ann):
    """G6: one letter has its reason, its traceback, its event, and those of its key behind it."""
    found = {path: ann.get(path).text for path in links(ann.get("/dead").text, f"/dead/{NAME}/")}
    first = next(page for page in found.values() if " one" in page)
    assert "Traceback" in first
    assert first.count("<li><a") == 2
    assert links(first, "/events/p")
    story = ann.get(links(first, "/events/p")[0]).text
    assert 'class="critical">parked' in story
    assert links(story, f"/dead/{NAME}/")[0] in found
    assert ann.get(f"/dead/{NAME}/p00/1-1").status == 404
    assert ann.get(f"/dead/{NAME}/nothing/x").status == 404


def test_a_plan_changes_nothing(parked, ann):
    """Each act says first what would follow; only its form does it."""
    page = ann.get("/dead").text
    (retry,), (discard,) = links(page, "/dead/retry?"), links(page, "/dead/discard?")
    assert "It would retry 4 events of 2 keys" in ann.get(retry).text
    assert "It would discard 2 events of 2 keys" in ann.get(discard).text
    assert "never tried" in ann.get("/dead/discard?all=1").text
    assert ann.get("/dead/burn?all=1").status == 409
    assert ann.get("/dead/retry").status == 409
    assert len(letters(parked, NAME)) == 4
    assert published(parked, OperatorActed) == []


def test_a_retry_applies_in_order(parked, ann, flag):
    """G3, G6: once the provider is well, a retry from the page applies what waits; it is told."""
    (retry,) = links(ann.get("/dead").text, "/dead/retry?")
    assert "told to raise Permanent" in act(ann, "/dead/retry", retry, why="a try")
    flag.unlink()
    said = act(ann, "/dead/retry", retry, why="the disk is mended")
    assert said.startswith("4 events applied; 0 events")
    assert letters(parked, NAME) == []
    assert [one for one in texts(home(parked)) if "behind" in one] == ["behind 1", "behind 2"]
    acts = [(one.act, one.operator, one.reason) for one in published(parked, OperatorActed)]
    assert acts[-1] == ("retry dead letters", "ann", "the disk is mended")
    assert "There are none." in ann.get("/dead").text


def test_a_discard_frees_what_waits(parked, ann):
    """G6: what is given up stays in the log with who and why; its key goes on."""
    letter = next(
        page
        for path in links(ann.get("/dead").text, f"/dead/{NAME}/")
        if " one" in (page := ann.get(path).text)
    )
    (discard,) = links(letter, "/dead/discard?")
    assert "give a reason" in send(ann, "/dead/discard", discard, why=" ").text
    said = act(ann, "/dead/discard", discard, why="test data")
    assert said.startswith("1 event discarded, 2 events applied")
    resolved = published(parked, DeadLetterResolved)
    assert [(one.action, one.operator, one.reason) for one in resolved] == [
        ("discard", "ann", "test data")
    ]
    story = ann.get(links(letter, "/events/p")[0]).text
    assert "discarded" in story
    assert "ann: test data" in story


def test_an_edit_is_applied_in_its_place(parked, ann):
    """G6: an event is put in the place of the one that was refused, if it is one."""
    letter = next(
        page
        for path in links(ann.get("/dead").text, f"/dead/{NAME}/")
        if " two" in (page := ann.get(path).text)
    )
    (edit,) = links(letter, "/dead/edit?")
    shown = ann.get(edit).text
    fields = html.unescape(re.findall(r"<textarea[^>]*>(.*?)</textarea>", shown, re.DOTALL)[0])
    for wrong in ("no JSON", '{"colour": "red"}'):
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', shown))
        answer = ann.post("/dead/edit", hidden | {"why": "x", "fields": wrong})
        assert answer.status == 500
    mended = re.sub(r"!permanent=\S* two", "mended", fields)
    assert act(ann, "/dead/edit", edit, why="misspelt", fields=mended).startswith("1 event applied")
    assert "mended" in texts(home(parked))
    assert len(letters(parked, NAME)) == 3


def test_strangers_see_no_letter(parked):
    """Without a token no view shows letters or plans, and a POST does nothing."""
    with served(msgspec.structs.replace(parked, page_token="")) as visitor:
        for path in ("/dead", "/dead/retry?all=1"):
            assert visitor.get(path).status in (303, 401)
        assert visitor.post("/dead/retry", {"all": "1", "why": "x"}).status == 403
    assert len(letters(parked, NAME)) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_errors_stay_texts(make_settings, redis_url, text):
    """What a provider says of an event, its names and its texts add no element to any view."""
    sayable = text.encode("utf-8", "replace").decode()
    known = set[tuple[str, tuple[str, ...]]]()
    for page in views(make_settings(url=redis_url, namespace="a", page_token=HASH), "harmless"):
        known |= elements(page)
    for page in views(make_settings(url=redis_url, namespace="b", page_token=HASH), sayable):
        assert elements(page) <= known
        assert "\u202e" not in page
        assert "\x1b" not in page


def views(settings: Settings, text: str) -> list[str]:
    """Return the views of a letter that says a text wherever it can."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed(text, "ok")
        assert bus.flush("logged", 10)
    put_aside(settings, text)
    with served(settings) as visitor:
        visitor.sign_in(f"ann {text}")
        page = visitor.get("/dead").text
        (letter,) = links(page, "/dead/builtin/")
        event = links(visitor.get(letter).text, "/events/p")[0]
        paths = [letter, event, *links(page, "/dead?"), *links(page, "/dead/retry?")]
        paths += links(visitor.get(letter).text, "/dead/edit?")
        paths += [f"/dead/retry?key={quote(text)}", f"/dead?provider={quote(text)}"]
        return [page, *(visitor.get(path).text for path in paths)]
