"""Names by which the page is reached."""

import hashlib
import re
import threading
from pathlib import Path
from typing import get_args

import memorybus_console.web
import pytest
from helpers.processes.waiting import wait_until
from memorybus.errors import ConfigError
from memorybus.health.finding import Code, Finding
from memorybus.health.metrics_server import is_loopback
from memorybus_console.web.guard import is_own_host
from memorybus_console.web.links import finding_view
from memorybus_console.web.signing import own_path
from memorybus_console.web.tasks import PageTasks, Tell


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8686", True),
        ("localhost:8686", True),
        ("LOCALHOST", True),
        ("[::1]:8686", True),
        ("10.0.0.7", True),
        ("bus.example:8686", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:8686", False),
        ("", False),
    ],
)
def test_a_strangers_name_is_refused(host, ours):
    """Addresses and names of the settings are ours; any other name may lead here by rebinding."""
    assert is_own_host(host, {"localhost", "bus.example"}) is ours


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("bus", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host, alone):
    """An address that others may reach is known as one."""
    assert is_loopback(host) is alone


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/providers/a?b=c", "/providers/a?b=c"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nx: y", "/"),
    ],
)
def test_signing_in_leads_nowhere_else(path, own):
    """What follows a sign-in is a path of the page."""
    assert own_path(path) == own


OF_THE_SERVER = {
    "eviction_policy",
    "persistence",
    "read_only",
    "no_append_only_file",
    "memory",
    "disk",
    "redis_away",
    "foreign_entries",
}
"""What has to be done at Redis, of which no view has more."""


def test_every_finding_but_the_servers_has_a_view() -> None:
    """A finding has a link unless it is about Redis itself."""
    findings = [Finding(code, "warning", "builtin", "", "") for code in get_args(Code)]
    assert {one.code for one in findings if finding_view(one) is None} == OF_THE_SERVER


def test_a_subject_becomes_one_part_of_the_path() -> None:
    """The lane is cut off, and what has a meaning in addresses is quoted."""
    view = finding_view(Finding("lane_halted", "critical", "a/../b?c:p07", "", ""))
    assert view is not None
    assert view.path == "/providers/a%2F..%2Fb%3Fc#lanes"


def test_a_task_tells_how_far_it_is_and_what_it_came_to(fake_clock):
    """While it runs its step is seen, and afterwards what it came to."""
    tasks, go = PageTasks(fake_clock), threading.Event()

    def work(tell: Tell) -> str:
        tell("fills", 3, 10)
        go.wait(30)
        return "it serves"

    tasks.begin("rebuild", "mem0", "ann", work)
    wait_until(lambda: tasks.all()[0].step == "fills", "the step is seen")
    assert (tasks.all()[0].done, tasks.all()[0].total, tasks.all()[0].is_running) == (
        3,
        10,
        True,
    )
    with pytest.raises(ConfigError, match="mem0 already"):
        tasks.begin("drop", "mem0", "bob", lambda _: "")
    go.set()
    wait_until(lambda: not tasks.all()[0].is_running, "it is over")
    assert tasks.all()[0].result == "it serves"


@pytest.mark.parametrize(
    ("error", "said"),
    [(ConfigError("no such redis://u:secret@h"), "no such redis://"), (KeyError("x"), "memorybus")],
)
def test_a_task_that_fails_says_why(fake_clock, error, said):
    """A failure is told, without credentials; one of our own is not quoted."""
    tasks = PageTasks(fake_clock)

    def work(_: Tell) -> str:
        raise error

    tasks.begin("rebuild", "mem0", "ann", work)
    wait_until(lambda: not tasks.all()[0].is_running, "it is over")
    assert said in tasks.all()[0].failed
    assert "secret" not in tasks.all()[0].failed


HOME = Path(memorybus_console.web.__file__).parent
TEMPLATES = {path.name: path.read_text() for path in (HOME / "templates").iterdir()}
INLINE = re.compile(r"(?i)<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:")


def test_what_others_wrote_is_as_they_published_it():
    """Each vendored file is in the table with its hash, and nothing else is."""
    lines = (HOME / "SHA256SUMS").read_text().splitlines()
    table = {name: found for found, name in (line.split("  ") for line in lines)}
    files = {one.name: one.read_bytes() for one in (HOME / "vendor").iterdir()}
    assert table == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_a_template_has_nothing_inline_and_marks_nothing_safe():
    """Scripts and styles are files, and no text goes unescaped."""
    unsafe = re.compile(rf"{INLINE.pattern}|\|\s*safe|autoescape")
    assert [name for name, text in TEMPLATES.items() if unsafe.search(text)] == []


def test_a_shortened_time_keeps_its_zone():
    """The script reads a time's attribute; a shortened text alone would count as local time."""
    shortened = re.compile(r"<time>[^<]*\| *short")
    assert [name for name, text in TEMPLATES.items() if shortened.search(text)] == []


def test_no_file_of_ours_names_another_host():
    """The page asks nobody but its own server."""
    files = TEMPLATES | {path.name: path.read_text() for path in (HOME / "static").iterdir()}
    hosts = {
        name: re.findall(r"https?://(?!www\.w3\.org/)[^\s\"')]+", text)
        for name, text in files.items()
    }
    assert {name: found for name, found in hosts.items() if found} == {}
