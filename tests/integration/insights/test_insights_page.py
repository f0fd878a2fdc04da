"""Insights as a file and on the operators' page, also in a real Chromium."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.archive.sealed_log import QUICK
from helpers.web.browser import Browser, chromium
from helpers.web.hostile import HOSTILE, elements
from helpers.web.pages import HASH, served
from memorybus import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.config.settings import Settings, to_environ
from memorybus_console.cli import main

DAY = 86_400_000


def talk(settings: Settings, names=("ann", "bob")) -> None:
    """Let people of these names talk to agents, with models and tools of the same names."""
    now = SYSTEM.now_ms()
    with MemoryBus.connect(settings) as bus:
        for number, name in enumerate(names):
            person = name.encode(errors="replace").decode()
            session = bus.session(f"s{person}", agent=person, user=person, platform=person,
                                  warm=False, at=now - number * DAY)  # fmt: skip
            call = {"function": {"name": name, "arguments": '{"name": "tidy"}'}}
            session.turn_completed(
                "hello", "good day", model=name, tokens_in=9, at=now - number * DAY,
                messages=[{"role": "assistant", "content": "", "tool_calls": [call]}],
            )  # fmt: skip
        bus.flush("logged", 10.0)


@pytest.fixture(name="talked", params=[("ann", "bob"), HOSTILE], ids=["plain", "hostile"])
def _talked(request, make_settings, redis_url) -> Settings:
    settings = make_settings(url=redis_url, page_token=HASH, **QUICK)
    talk(settings, request.param)
    return settings


@pytest.fixture(name="write")
def _write(monkeypatch) -> Callable[[Settings, Path], int]:
    def write(settings: Settings, file: Path) -> int:
        for name, value in to_environ(settings).items():
            monkeypatch.setenv(name, value)
        return main(["insights", "--html", str(file)])

    return write


def test_the_file_and_the_page_show_the_same(talked, write, tmp_path, capsys):
    """Both have the same plots and tables, and no name becomes an element."""
    file = tmp_path / "figures.html"
    assert write(talked, file) == 0
    assert str(file) in capsys.readouterr().err
    page = file.read_text()
    with served(talked) as visitor:
        visitor.sign_in("ann")
        shown = visitor.get("/insights").text
    figures = page.partition("<dl")[2].partition("</main>")[0]
    assert figures.strip() in shown
    assert {name for name, _ in elements(page)} == {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "p", "dl", "div", "dt",
        "dd", "figure", "figcaption", "svg", "rect", "text", "section", "h2", "table", "thead",
        "tr", "th", "span", "tbody", "td", "ul", "li",
    }  # fmt: skip
    assert file.stat().st_mode & 0o077 == 0


def test_the_page_filters_and_names_what_is_wrong(make_settings, redis_url):
    """A person and days are chosen in the form; an unknown zone is named there."""
    settings = make_settings(url=redis_url, page_token=HASH, **QUICK)
    talk(settings)
    with served(settings) as visitor:
        visitor.sign_in("ann")
        assert "user bob" in visitor.get("/insights?user=bob&days=7&zone=Asia/Tokyo").text
        wrong = visitor.get("/insights?zone=Nowhere&days=x")
        assert "timezone &#39;Nowhere&#39; is not known" in wrong.text
        assert visitor.get("/insights?days=99999999999999999999").status == 200
        assert visitor.get(f"/insights?days={'9' * 5_000}").status == 200


def test_a_file_that_cannot_be_written_is_named(settings, write, tmp_path, capsys):
    """The error names the file and asks for another one."""
    assert write(settings, tmp_path / "none" / "x.html") != 0
    error = " ".join(capsys.readouterr().err.split())
    assert "x.html cannot be written (No such file or directory)" in error


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.mark.servers
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_file_and_the_page_are_read_on_any_screen(
    talked, write, browser, tmp_path, scheme, width
):
    """Neither scrolls sideways, runs a script or breaks a rule of accessibility."""
    file = tmp_path / "figures.html"
    assert write(talked, file) == 0
    with served(talked) as visitor, browser.tab(visitor.address, scheme, width) as tab:
        tab.sign_in("ann", "a token of these tests")
        for address in (f"http://{visitor.address}/insights", f"file://{file}"):
            tab.page.goto(address, wait_until="load")
            assert tab.page.locator(".plot svg").count() == 2
            scroll = "[document.documentElement, ...document.querySelectorAll('.scroll')]"
            wide = f"Math.max(...{scroll}.map((e) => e.scrollWidth - e.clientWidth))"
            assert tab.page.evaluate(wide) <= 0, address
            assert tab.page.evaluate("window.pwned") is None
            if address.startswith("http"):
                assert tab.violations() == []
        assert tab.complaints == []
        assert [stranger for stranger in tab.strangers if not stranger.startswith("file:")] == []
