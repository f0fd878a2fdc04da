"""The page in a real Chromium: it opens, keeps to itself, acts, and shows hostile text as text."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.stories.published import published
from helpers.stories.scenario import thread_worker
from helpers.web.browser import Browser, Watched, chromium
from helpers.web.letters import put_aside
from helpers.web.pages import HASH, TOKEN, served
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import OperatorActed
from memorybus_console.operations.providers import lifecycle
from memorybus_console.operations.stores import Stores
from memorybus_console.web.pages import PAGES

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

VIEWS = (
    *(page.path for page in PAGES if page.label),
    "/providers/builtin",
    "/history/builtin",
    "/history/builtin/diff",
    "/signin",
)

HOSTILE = (
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    '"><svg onload=window.hit=1>',
    "'-window.hit=1-'",
    "{{7*7}}${7*7}",
    "</title><script>window.hit=1</script>",
    "javascript:window.hit=1",
    "data: x\n\nevent: message\ndata: <script>window.hit=1</script>",
    "\u202e\u0000\x1b[31m",
)


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(name="guarded")
def _guarded(make_settings: MakeSettings, redis_url: str) -> Settings:
    return make_settings(url=redis_url, page_token=HASH)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_view_opens_without_a_complaint(guarded, browser, scheme, width):
    """No view errs, asks another host or is wider than a phone, in light and in dark."""
    with served(guarded) as visitor, browser.tab(visitor.address, scheme, width) as tab:
        tab.sign_in("ann", TOKEN)
        for path in VIEWS:
            tab.open(path)
            assert tab.page.locator("h1").count() == 1
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.complaints == []
        assert tab.strangers == []


def test_dark_is_dark(settings, browser):
    """The ground follows the reader's preference."""
    with served(settings) as visitor:
        grounds = []
        for scheme in ("light", "dark"):
            with browser.tab(visitor.address, scheme) as tab:
                tab.open("/")
                ground = "getComputedStyle(document.body).backgroundColor"
                grounds.append(sum(map(int, re.findall(r"\d+", tab.page.evaluate(ground))[:3])))
    assert grounds[0] > 600
    assert grounds[1] < 150


def test_the_overview_stays_up_to_date(settings, browser):
    """What comes while somebody looks is shown without loading the page again."""
    with served(settings) as visitor, browser.tab(visitor.address) as tab:
        tab.open("/")
        with MemoryBus.connect(settings) as bus:
            bus.session("s", warm=False).turn_completed("Where is it?", "There.")
            assert bus.flush("logged", 10)
        events = tab.page.locator(".figures dd").first
        events.filter(has_text="2").wait_for(timeout=15_000)
        assert tab.complaints == []


def test_the_last_hour_is_drawn(settings, browser):
    """Both charts have a line for each provider."""
    with served(settings) as visitor, browser.tab(visitor.address) as tab:
        tab.open("/")
        tab.page.locator(".chart canvas").nth(1).wait_for(timeout=15_000)
        assert tab.page.locator(".chart").first.get_by_text("holographic").count() == 1


def test_the_charts_follow_the_window(settings, browser: Browser):
    """A chart is as wide as its figure after the window became narrower, and wider again."""
    fits = (
        "() => [...document.querySelectorAll('.chart')].every((figure) => figure.plot && "
        "figure.plot.chart.width === figure.clientWidth - 20)"
    )
    with served(settings) as visitor, browser.tab(visitor.address) as tab:
        tab.open("/")
        for width in (1280, 500, 1000):
            tab.page.set_viewport_size({"width": width, "height": 800})
            tab.page.wait_for_function(fits)


def test_times_are_of_the_readers_zone(settings, browser: Browser):
    """A time is shown in the zone of the reader, and in UTC on hover."""
    with MemoryBus.connect(settings) as bus:
        bus.session("s", warm=False).turn_completed("Where is it?", "There.")
        assert bus.flush("logged", 10)
    signed = msgspec.structs.replace(settings, page_token=HASH)
    with served(signed) as visitor, browser.tab(visitor.address, zone="Asia/Tokyo") as tab:
        tab.sign_in("ann", TOKEN)
        tab.open("/sessions")
        element = tab.page.locator("main table time").first
        local = datetime.fromisoformat(element.inner_text())
        utc = datetime.fromisoformat(element.get_attribute("title").removesuffix(" UTC"))
        assert local - utc == timedelta(hours=9)


def test_a_finding_leads_to_its_act(guarded, browser: Browser):
    """The title counts what is wrong, and a finding links to the form that ends it."""
    with Stores(guarded) as stores:
        lifecycle.pause_instance(stores, "builtin", "its disk is full", "ann")
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        findings = tab.page.locator(".findings li").count()
        assert tab.page.title() == f"({findings}) Overview · memorybus"
        tab.page.get_by_role("link", name="Resume").click()
        tab.page.wait_for_url("**/providers/builtin#resume")
        tab.page.get_by_role("button", name="Resume").click()
        tab.page.get_by_role("status").filter(has_text="builtin is resumed").wait_for()
        tab.open("/")
        left = tab.page.locator(".findings li").count()
        assert (left, tab.page.title()) == (findings - 1, f"({left}) Overview · memorybus")


def test_an_act_is_done_and_told_to_the_log(guarded, browser: Browser):
    """Who is signed in pauses a provider with a reason; the log says who, what and why."""
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        tab.open("/providers/builtin")
        tab.page.fill("#why-pause", "its disk is mended")
        tab.page.get_by_role("button", name="Pause").click()
        tab.page.get_by_role("status").filter(has_text="builtin is paused").wait_for()
        with Stores(guarded) as stores:
            pause = stores.instances.pauses()["builtin"]
        assert (pause.reason, pause.by) == ("its disk is mended", "ann")
        assert published(guarded, OperatorActed) == [
            OperatorActed(
                act="pause provider",
                operator="ann",
                reason="its disk is mended",
                about={"name": "builtin"},
            )
        ]
        tab.page.get_by_role("button", name="Resume").click()
        tab.page.get_by_role("status").filter(has_text="builtin is resumed").wait_for()
        with Stores(guarded) as stores:
            assert stores.instances.pauses() == {}
        assert tab.complaints == []


@pytest.fixture(name="poisoned")
def _poisoned(make_settings: MakeSettings, redis_url: str) -> Iterator[Settings]:
    """Return a bus whose sessions, people, memories and reasons are hostile; a worker serves it."""
    settings = make_settings(url=redis_url, providers=("builtin", "holographic"))
    with thread_worker(settings):
        with MemoryBus.connect(settings) as bus:
            for number, text in enumerate(HOSTILE):
                name = text if text.isprintable() else f"s{number}"
                session = bus.session(name, user=name, agent=name, warm=False, title=text)
                session.turn_completed(text, text, ordinal=0)
                session.memory_written("add", text, store="user")
            assert bus.flush("logged", 30)
        with Stores(settings) as stores:
            heads = sum(head.n for head in stores.history.log.heads())
            wait_until(
                lambda: sum(lane.n for lane in stores.lanes.states("builtin")) == heads, "applied"
            )
            lifecycle.pause_instance(stores, "builtin", "".join(HOSTILE), HOSTILE[0])
        yield settings


def test_hostile_text_stays_text(poisoned, browser):
    """What anybody wrote or is called is shown as it is, whole and live, and runs nowhere."""
    signed = msgspec.structs.replace(poisoned, page_token=HASH)
    with served(signed) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        for path in VIEWS:
            tab.open(path)
            if tab.page.locator("#live > *").count():
                wait_until(lambda: is_live(tab), f"the live part of {path} was swapped")
            assert tab.page.evaluate("window.hit") is None, path
            assert tab.page.locator("main script, main img").count() == 0, path
        assert tab.complaints == []
        assert tab.strangers == []


def test_a_phone_needs_no_scrolling_sideways(poisoned: Settings, browser: Browser) -> None:
    """Lists are stacked on a phone, and the navigation is one line that shows the open view."""
    signed = msgspec.structs.replace(poisoned, page_token=HASH)
    put_aside(poisoned, "a reason that no phone has in one line " * 5)
    hidden = "[...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth - e.clientWidth)"
    lines = "new Set([...document.querySelectorAll('nav a')].map((a) => a.offsetTop)).size"
    with served(signed) as visitor, browser.tab(visitor.address, width=390) as tab:
        tab.sign_in("ann", TOKEN)
        for path in ("/", "/dead", "/dead/discard?all=1", "/workers", "/memories", "/sessions"):
            tab.open(path)
            assert tab.page.locator("tbody tr td").count() >= 1, path
            assert set(tab.page.evaluate(hidden)) == {0}, path
            assert tab.page.evaluate(lines) == 1, path
            for current in tab.page.locator("nav [aria-current]").all():
                box = current.bounding_box()
                assert box, path
                assert 0 <= box["x"] <= 390 - box["width"], path


def is_live(tab: Watched) -> bool:
    """Say whether the stream of events has brought something."""
    return bool(tab.page.evaluate("document.getElementById('live').dataset.at !== undefined"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(guarded, browser, scheme):
    """Every view keeps WCAG 2.1 A and AA, as far as axe can tell, with something wrong to show."""
    with served(guarded) as visitor, browser.tab(visitor.address, scheme) as tab:
        tab.open("/signin")
        found = tab.violations()
        tab.sign_in("ann", TOKEN)
        for path in VIEWS:
            tab.open(path)
            found += tab.violations()
    assert found == []


def test_keys_open_views_and_the_first_tab_skips(guarded, browser):
    """A key opens a view, ``?`` lists them, they may be turned off; Tab reaches the skip first."""
    with served(guarded) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        tab.open("/")
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.className") == "skip"
        tab.page.keyboard.press("?")
        assert tab.page.locator("dialog").is_visible()
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("w")
        tab.page.wait_for_url("**/workers")
        tab.page.locator("[data-keys]").click()
        tab.page.locator("#keys-on").uncheck()
        tab.page.get_by_role("button", name="Close").click()
        tab.page.keyboard.press("?")
        assert not tab.page.locator("dialog").is_visible()
