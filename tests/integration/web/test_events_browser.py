"""Events, tail and dead letters in a real Chromium: they open, follow, act, keep to themselves."""

import re
from collections.abc import Iterator

import pytest
from helpers.making import MakeSettings
from helpers.stories.scenario import say
from helpers.web.browser import Browser, Watched, chromium
from helpers.web.hostile import HOSTILE
from helpers.web.letters import put_aside
from helpers.web.pages import HASH, TOKEN, served
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.dead_letters.queue import DeadLetters
from memorybus_console.web.pages import events

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(name="guarded")
def _guarded(make_settings: MakeSettings, redis_url: str) -> Settings:
    """Return settings of a page that acts, over some turns and a dead letter."""
    settings = make_settings(url=redis_url, page_token=HASH)
    with MemoryBus.connect(settings) as bus:
        say(bus, "s-1", *(f"says {number}" for number in range(30)))
        assert bus.flush("logged", 10)
    put_aside(settings, "told to raise Permanent " * 20)
    return settings


def views(tab: Watched) -> list[str]:
    """Return the paths of all views, as links lead to them."""
    tab.open("/dead")
    letter = tab.page.locator("tbody a[href^='/dead/builtin/']").first.get_attribute("href")
    tab.open(letter or "")
    more = tab.page.locator("main a[href^='/events/p'], main a[href^='/dead/']")
    found = [more.nth(at).get_attribute("href") or "" for at in range(more.count())]
    return [
        "/events?q=says",
        "/events?since=x",
        "/tail",
        "/sessions",
        "/dead",
        letter or "",
        *found,
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_view_opens_and_reads(guarded, browser, scheme, width):
    """No view errs, asks another host, is wider than a phone or breaks WCAG 2.1 AA (axe)."""
    found = list[tuple[str, str]]()
    with served(guarded) as visitor, browser.tab(visitor.address, scheme, width) as tab:
        tab.sign_in("ann", TOKEN)
        for path in views(tab):
            tab.open(path)
            assert tab.page.locator("h1").count() == 1
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, path
            found += tab.violations()
        assert tab.complaints == []
        assert tab.strangers == []
    assert found == []


def test_a_search_goes_on_by_itself(guarded, browser, monkeypatch):
    """A search that takes more than one request is gone on with until all is looked at."""
    monkeypatch.setattr(events, "SEARCH_SECONDS", 0.0)
    monkeypatch.setattr("memorybus_console.operations.events.search.ASK_EVERY", 10)
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        tab.open("/events?q=%22says+1%22")
        tab.page.get_by_text("That is all: looked at 31 events").wait_for(timeout=15_000)
        assert tab.page.locator("tbody tr td:last-child", has_text="says 1").count() == 11
        assert tab.complaints == []


def test_a_search_can_be_stopped(guarded, browser, monkeypatch):
    """The button ends it; what was found stays, and a link goes on from there."""
    monkeypatch.setattr(events, "SEARCH_SECONDS", 0.0)
    monkeypatch.setattr("memorybus_console.operations.events.search.ASK_EVERY", 1)
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        tab.open("/events?q=nobody+said+this")
        tab.page.get_by_role("button", name="Stop").click()
        tab.page.get_by_role("link", name="Older events").wait_for()
        assert tab.page.get_by_role("button", name="Stop").count() == 0
        # htmx tells the console of a request that the button ended
        assert [one for one in tab.complaints if not one.startswith("htmx:")] == []


def test_the_tail_follows(guarded, browser):
    """What is published comes to the top by itself; who types in the form is not interrupted."""
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        tab.open("/tail?session=s-1")
        tab.page.fill("[name=q]", "typing")
        with MemoryBus.connect(guarded) as bus:
            say(bus, "s-1", "brand new")
            assert bus.flush("logged", 10)
        tab.page.locator("tbody tr").first.get_by_text("brand new").wait_for(timeout=15_000)
        assert tab.page.input_value("[name=q]") == "typing"
        assert tab.complaints == []


def test_a_plan_and_its_act_with_the_keyboard(guarded, browser):
    """From the list over the plan to the act; without a worker it says that nobody does it."""
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        tab.page.keyboard.press("d")
        tab.page.wait_for_url("**/dead")
        tab.page.get_by_role("link", name="Discard…").first.press("Enter")
        tab.page.get_by_text("It would discard 1 event of 1 key").wait_for()
        tab.page.get_by_label("Reason").fill("test data")
        tab.page.get_by_label("Reason").press("Enter")
        tab.page.get_by_role("status").filter(has_text="no worker owns these lanes").wait_for()
        assert tab.complaints == []
    desk = DeadLetters(guarded)
    assert len(desk.waiting_requests("builtin")) == 1
    desk.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_runs_nowhere(make_settings, redis_url, browser, text):
    """What anybody said, and what a provider said of it, is text in every view, live ones too."""
    settings = make_settings(url=redis_url, page_token=HASH)
    sayable = text.encode("utf-8", "replace").decode()
    with MemoryBus.connect(settings) as bus:
        bus.session(f"s {sayable}", user=sayable, warm=False).turn_completed(sayable, sayable)
        assert bus.flush("logged", 10)
    put_aside(settings, sayable)
    with served(settings) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in(f"ann {sayable}", TOKEN)
        for path in views(tab):
            tab.open(path)
            assert tab.page.evaluate("window.pwned") is None
            assert tab.page.locator("main script, main img, main iframe, main math").count() == 0
            assert tab.page.locator("body").is_visible()
        assert [one for one in tab.complaints if not re.search("404", one)] == []
        assert tab.strangers == []
