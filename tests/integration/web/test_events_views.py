"""The views of events: search, one event with what became of it, and the live tail."""

import html
import http.client
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from helpers.web.hostile import HOSTILE, elements
from helpers.web.pages import Visitor, looked_at
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.cli import main
from memorybus_console.web.pages import events


def say(settings: Settings, session: str, *texts: str, user: str = "ann") -> None:
    """Publish turns of one session."""
    with MemoryBus.connect(settings) as bus:
        for text in texts:
            bus.session(session, user=user, warm=False).turn_completed(text, "well")
        assert bus.flush("logged", 10)


@pytest.fixture(name="visitor")
def _visitor(settings: Settings) -> Iterator[Visitor]:
    """Return somebody who looks at a page over some turns."""
    say(settings, "s-ann", *(f"ann asks {turn}" for turn in range(5)))
    say(settings, "s-bob", *(f"bob asks {turn}" for turn in range(30)), user="bob")
    with looked_at(settings) as visitor:
        yield visitor


def said(text: str) -> list[str]:
    """Return what the rows of a table say."""
    rows = re.findall(r"<tr><td[^>]*><a href.*?</tr>", text, re.DOTALL)
    return [html.unescape(re.findall(r"<td[^>]*>(.*?)</td>", row)[-1]) for row in rows]


def test_the_form_finds_by_words_person_and_session(visitor):
    """The form's fields narrow the search, and stand in the form again."""
    found = visitor.get("/events?q=%22ann+asks%22")
    assert sorted(said(found.text)) == [f"ann asks {turn}" for turn in range(5)]
    assert 'value="&#34;ann asks&#34;"' in found.text
    assert "That is all" in found.text
    assert len(said(visitor.get("/events?user=ann&type=TurnCompleted").text)) == 5
    assert len(said(visitor.get("/events?session=s-ann&since=1h&q=asks").text)) == 5
    assert said(visitor.get("/events?q=asks&until=1h").text) == []


def test_a_page_leads_to_older_events(visitor):
    """A full page names the next one; together they are all, each once."""
    first = visitor.get("/events?q=asks").text
    assert len(said(first)) == events.PAGE_SIZE
    older = html.unescape(re.findall(r'<a href="(/events\?[^"]*before=[^"]*)"', first)[0])
    both = said(first) + said(visitor.get(older).text)
    assert len(both) == len(set(both)) == 35


def test_a_search_that_takes_long_is_gone_on_with(visitor, monkeypatch):
    """A request looks for a bounded time; the page asks for the rest, and stops if told to."""
    monkeypatch.setattr(events, "SEARCH_SECONDS", 0.0)
    monkeypatch.setattr("memorybus_console.operations.events.search.ASK_EVERY", 10)
    found = visitor.get("/events?q=nobody+said+this").text
    going = html.unescape(re.findall(r'<tbody class="going" hx-get="([^"]*)"', found)[0])
    assert "looked at 10 events" in found
    stopped = visitor.get(f"{going}&held=1").text
    assert "going" not in stopped
    assert "Older events" in stopped
    for _ in range(10):
        found = visitor.get(going).text
        more = re.findall(r'<tbody class="going" hx-get="([^"]*)"', found)
        if not more:
            break
        going = html.unescape(more[0])
    assert "That is all: looked at" in found


@pytest.mark.parametrize("wrong", ["since=yesterday", "type=Nothing", "before=p1"])
def test_what_nobody_can_read_is_told_in_the_form(visitor, wrong):
    """A wrong time, type or place is a sentence above the table, not a failure."""
    answer = visitor.get(f"/events?{wrong}")
    assert answer.status == 200
    assert 'role="alert"' in answer.text


def test_an_event_has_its_story(settings, visitor):
    """One event: what it says, where it lies, and at each provider how much is before it."""
    place = re.findall(r'href="(/events/p[^"]*)"', visitor.get("/events?q=%22ann+asks+4%22").text)[
        0
    ]
    page = visitor.get(place)
    assert page.status == 200
    assert "ann asks 4" in page.text
    assert "in the log" in page.text
    assert page.text.count("no worker has its lane") == len(settings.providers)
    found = re.findall(r'<dd class="id">([0-9a-f]{32})</dd>', page.text)[0]
    assert said(visitor.get(f"/events?q={found}").text) == ["user: ann asks 4 ⏎ assistant: well"]


@pytest.mark.parametrize("place", ["p00:1-1", "p99:1-1", "nothing", "p00%3A1795486545838-99"])
def test_where_there_is_no_event_none_is_shown(visitor, place):
    """A place without an event is not found, and says so."""
    assert visitor.get(f"/events/{place}").status == 404


def test_the_tail_is_live(settings, visitor):
    """What is published while somebody follows comes by itself, the newest first."""
    connection = http.client.HTTPConnection(visitor.address, timeout=30)
    headers = visitor.headers | {"Accept": "text/event-stream"}
    connection.request("GET", "/tail?session=s-ann", headers=headers)
    stream = connection.getresponse()
    assert len(said(until(stream, "ann asks 4"))) == 6
    say(settings, "s-ann", "one more")
    assert "one more" in said(until(stream, "one more"))[0]
    connection.close()


def until(stream: http.client.HTTPResponse, text: str) -> str:
    """Return the next event of a stream that holds a text."""
    lines: list[str] = []
    while True:
        line = stream.readline().decode()
        assert line, "the stream ended"
        if line.strip():
            lines.append(line.removeprefix("data: "))
        elif text in (found := "".join(lines)):
            return found
        else:
            lines = []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(make_settings, redis_url, text):
    """Whatever is said, is a name or is searched for adds no element and no attribute to a page."""
    harmless, hostile = (make_settings(url=redis_url, namespace=name) for name in ("a", "b"))
    sayable = text.encode("utf-8", "replace").decode()
    known = set[tuple[str, tuple[str, ...]]]()
    for page in views(harmless, "harmless"):
        known |= elements(page)
    for page in views(hostile, sayable):
        assert elements(page) <= known
        assert "\u202e" not in page
        assert "\x1b" not in page


def views(settings: Settings, text: str) -> list[str]:
    """Return the views where a text was said, is a name, and is searched for."""
    say(settings, f"s {text}", text, user=f"u {text}")
    with looked_at(settings) as visitor:
        found = visitor.get("/events?q=s").text
        place = re.findall(r'href="(/events/p[^"]*)"', found)[0]
        paths = [place, "/tail", f"/events/{quote(text, safe='')}"]
        names = ("q", "session", "user", "since", "type", "before")
        paths += [f"/events?{name}={quote(text, safe='')}" for name in names]
        return [found, *(visitor.get(path).text for path in paths)]


def test_what_is_sealed_is_seen(ready):
    """G7: search and story read the archive, too."""
    say(ready, "s-ann", "asks 1", "asks 2")
    assert main(["archive", "run"]) == 0
    with looked_at(ready) as visitor:
        found = visitor.get("/events?q=asks").text
        assert len(said(found)) == 2
        page = visitor.get(re.findall(r'href="(/events/p[^"]*)"', found)[-1]).text
    assert "sealed in segments/" in page
