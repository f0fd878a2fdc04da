"""Sessions as a tree on the page."""

import html
import re

import pytest
from helpers.web.hostile import HOSTILE, elements
from helpers.web.pages import looked_at
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus_console.web.pages import sessions


def talk(settings: Settings, name: str, user: str = "ann") -> None:
    """Publish a session, a branch of it, and what that delegated."""
    with MemoryBus.connect(settings) as bus:
        session = bus.session(name, user=user, title=f"about {name}", warm=False)
        session.turn_completed("hello", "hi")
        branch = session.branch(f"{name} b")
        branch.turn_completed("and now?", "well")
        branch.delegated("look it up", "done", child_session=f"{name} c")
        assert bus.flush("logged", 10)


def rows(text: str) -> list[tuple[str, str]]:
    """Return how each session is drawn, and its name."""
    found = re.findall(r'<span class="dim drawn"[^>]*>(.*?)</span><a[^>]*>(.*?)</a>', text)
    return [(drawn, html.unescape(name)) for drawn, name in found]


def test_sessions_stand_below_where_they_came_from(settings):
    """Branches and delegations stand under their sessions, with the reason."""
    talk(settings, "s-1")
    talk(settings, "s-2", user="bob")
    with looked_at(settings) as visitor:
        page = visitor.get("/sessions").text
        assert sorted(name for _, name in rows(page)) == sorted(
            f"{name}{end}" for name in ("s-1", "s-2") for end in ("", " b", " c")
        )
        assert rows(visitor.get("/sessions?user=bob").text) == [
            ("", "s-2"),
            ("└─ ", "s-2 b"),
            ("   └─ ", "s-2 c"),
        ]
        assert "branch of s-1" in page
        assert len(rows(visitor.get("/sessions?session=s-1+c").text)) == 3
        assert "No such sessions" in visitor.get("/sessions?session=nobody").text


def test_a_view_reads_a_bounded_part(settings, monkeypatch):
    """What is older stands on the pages behind the first."""
    monkeypatch.setattr(sessions, "MAX_EVENTS", 2)
    for number in range(3):
        talk(settings, f"s-{number}")
    found, path = set[str](), "/sessions"
    with looked_at(settings) as visitor:
        while path:
            page = visitor.get(path).text
            assert "Sessions in 2 events" in page or not re.search("Sessions of older", page)
            found |= {name for _, name in rows(page)}
            older = re.findall(r'<a href="(/sessions\?[^"]*before=[^"]*)"', page)
            path = html.unescape(older[0]) if older else ""
    assert {"s-0", "s-1", "s-2"} <= found


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_texts(make_settings, redis_url, text):
    """What sessions and people are called adds no element to the view."""
    sayable = text.encode("utf-8", "replace").decode()
    pages = []
    for namespace, name in (("a", "harmless"), ("b", sayable)):
        settings = make_settings(url=redis_url, namespace=namespace)
        talk(settings, name, user=name)
        with looked_at(settings) as visitor:
            pages.append(visitor.get("/sessions").text)
    assert elements(pages[1]) <= elements(pages[0])
    assert "\u202e" not in pages[1]
    assert "\x1b" not in pages[1]
