"""Recall and memories in a real Chromium, on hostile memories and on real conversations."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.scenario import PATIENT, wait_applied, worker
from helpers.web.browser import Browser, Watched, chromium
from helpers.web.hostile import HOSTILE
from helpers.web.pages import HASH, TOKEN, served
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.cli.app import main
from memorybus_console.operations.preview import Asker, preview_prompt

pytestmark = pytest.mark.timeout(300)

WAIT_SECONDS = 60.0
BOTH = ("builtin", "holographic")
SURE: Any = {**PATIENT, "recall_timeout": 30.0, "prefetch_wait": 20.0}
ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data" / "locomo"
TALKS = sorted(DATA.glob("*.json"))


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(name="bus_settings")
def _bus_settings(redis_url: str, make_settings: MakeSettings, spawn: Spawn) -> Settings:
    settings = make_settings(url=redis_url, providers=BOTH, page_token=HASH, **SURE)
    worker(spawn, settings, jobs=1)
    return settings


def asked(tab: Watched, user: str, question: str) -> None:
    """Ask as a person does: fill in the form, and wait for the answer."""
    tab.open("/recall")
    tab.page.fill("[name=user]", user)
    tab.page.fill("[name=q]", question)
    tab.page.get_by_role("button", name="Ask").click()
    tab.page.get_by_role("heading", name="Answers").wait_for(timeout=WAIT_SECONDS * 1000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_memories_stay_text(bus_settings, redis_client, browser, scheme):
    """What was stored as memories is shown, makes nothing happen, and keeps WCAG 2.1 AA."""
    with MemoryBus.connect(bus_settings) as bus:
        session = bus.session("s", user="eve", warm=False)
        for number, text in enumerate(HOSTILE):
            session.turn_completed(f"a heron {text}", text, ordinal=number)
            session.memory_written("add", f"heron {text}", store="user")
        assert bus.flush("logged", WAIT_SECONDS)
    for name in BOTH:
        wait_applied(redis_client, bus_settings, name)
    who = Asker(user="eve")
    wait_until(
        lambda: preview_prompt(bus_settings, "heron", who).block, "it is recalled", WAIT_SECONDS
    )
    wrong: list[tuple[str, str]] = []

    def looked(tab: Watched) -> None:
        assert tab.page.evaluate("window.pwned") is None
        assert tab.page.locator("main script, main img, main iframe, main svg").count() == 0
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
        wrong.extend(tab.violations())

    with served(bus_settings) as visitor, browser.tab(visitor.address, scheme, 360) as tab:
        tab.sign_in("ann", TOKEN)
        asked(tab, "eve", "heron")
        assert "window.pwned=1" in tab.page.locator("#block").inner_text()
        looked(tab)
        tab.open("/memories")
        looked(tab)
        tab.page.get_by_role("link", name="holographic of eve").click()
        assert tab.page.locator(".memory").filter(has_text="<script>window.pwned=1").count()
        looked(tab)
        tab.page.get_by_role("link", name="Correct…").first.click()
        tab.page.get_by_role("heading", name="What would happen").wait_for()
        looked(tab)
        tab.page.fill("[name=content]", "A heron, and no script.")
        tab.page.fill("#why-correct", "it was no memory")
        tab.page.get_by_role("button", name="Correct it").click()
        tab.page.get_by_role("status").filter(has_text="the memory is corrected").wait_for()
        assert tab.page.locator(".memory").filter(has_text="A heron, and no script.").count()
        assert tab.complaints == []
        assert tab.strangers == []
    assert wrong == []


@pytest.mark.locomo
@pytest.mark.skipif(not TALKS, reason=f"no LoCoMo conversations in {DATA}")
def test_real_conversations_are_asked_and_browsed(bus_settings, redis_client, browser):
    """A real conversation: a question of its people finds a block, and pages hold all memories."""
    where = ("--url", bus_settings.url, "--namespace", bus_settings.namespace)
    where += ("--data-dir", str(bus_settings.data_dir))
    assert main(["ingest", str(TALKS[0]), "--user", "ana", *where]) == 0
    for name in BOTH:
        wait_applied(redis_client, bus_settings, name, WAIT_SECONDS)
    with served(bus_settings) as visitor, browser.tab(visitor.address) as tab:
        tab.sign_in("ann", TOKEN)
        asked(tab, "ana", "What did we talk about last summer?")
        assert tab.page.locator("#block").count() == 1
        tab.open("/memories")
        tab.page.get_by_role("link", name="holographic of ana").click()
        seen = 0
        while True:
            seen += tab.page.locator(".memory").count()
            more = tab.page.get_by_role("link", name="More memories")
            if not more.count():
                break
            more.click()
            tab.page.wait_for_load_state()
        tab.open("/memories")
        told = tab.page.get_by_role("link", name="holographic of ana").inner_text()
        facts = int(re.sub(r"\D", "", told))
        assert seen >= facts > 300
        assert tab.complaints == []
