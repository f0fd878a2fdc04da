"""How a log line looks, and which fields it has."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

import pytest
from memorybus.config.settings import LogForm
from memorybus_workers import logs
from structlog.contextvars import bind_contextvars, bound_contextvars

Lines = Callable[[], list[str]]

_log = logging.getLogger("memorybus.test")


@pytest.fixture(name="own_logging", autouse=True)
def _own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the process back as it was: `set_up` is made for whole processes."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr("threading.excepthook", None)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def written(form: LogForm, say: Callable[[], None], *, terminal: bool = False) -> str:
    """Return what is logged by `say`, called in a context of its own as a thread is."""
    stderr = io.StringIO()
    stderr.isatty = lambda: terminal
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        logs.set_up(form, secrets={"hunter2hunter2"})
        Context().run(say)
    return stderr.getvalue()


@pytest.mark.parametrize(
    ("level", "shown"), [("debug", ["one", "two", "three"]), ("warning", ["three"]), ("error", [])]
)
def test_a_level_leaves_out_what_is_below(level, shown):
    """The setting `log_level` is the lowest level of the lines that are shown."""
    stderr = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        logs.set_up("json", level)
        for tell, text in ((_log.debug, "one"), (_log.info, "two"), (_log.warning, "three")):
            tell(text)
    assert [json.loads(line)["event"] for line in stderr.getvalue().splitlines()] == shown


def as_json(say: Callable[[], None]) -> list[dict[str, Any]]:
    """Return the lines that are logged by `say`."""
    return [json.loads(line) for line in written("json", say).splitlines()]


def test_a_line_has_what_its_thread_bound_and_its_caller_gave():
    """A field stays until it is bound anew, or until the block that it was bound in ends."""

    def say() -> None:
        bind_contextvars(provider="mem0", session="before")
        with bound_contextvars(session="s"):
            _log.warning("one of %d", 2, extra={"lanes": 7})
        _log.info("two")

    one, two = as_json(say)
    assert one.pop("timestamp").endswith("Z")
    assert list(one) == ["event", "lanes", "level", "provider", "session"]
    assert one == {
        "event": "one of 2",
        "provider": "mem0",
        "session": "s",
        "level": "warning",
        "lanes": 7,
    }
    assert (two["provider"], two["session"]) == ("mem0", "before")


def test_hostile_text_is_one_line_without_credentials():
    """No text steers a terminal, forges a line or shows a secret; names are shown as they are."""

    def say() -> None:
        bind_contextvars(session="hunter2hunter2")
        _log.error("a\x1b[2Jb\n2026 forged, hunter2hunter2 \udc80")

    (line,) = as_json(say)
    assert (line["event"].count("\n"), "\x1b" in line["event"]) == (0, False)
    assert ("hunter2hunter2" in line["event"], line["session"]) == (False, "hunter2hunter2")
    assert written("text", say).count("\n") == 1


def test_text_shows_a_trace_below_its_line():
    """People read when, how grave and what; a terminal gets a colour for what is grave."""

    def say() -> None:
        try:
            int("of hunter2hunter2")
        except ValueError:
            _log.exception("it failed", extra={"provider": "mem0"})

    first, *trace = written("text", say).splitlines()
    assert first.split(maxsplit=1)[1] == f"[error    ] {'it failed':<30} provider=mem0"
    assert (trace[0], trace[-1]) == (
        "Traceback (most recent call last):",
        "ValueError: invalid literal for int() with base 10: 'of ***'",
    )
    assert "[\x1b[31m\x1b[1merror    \x1b[0m]" in written("text", say, terminal=True)


def test_a_client_of_services_does_not_tell_of_each_request():
    """Its paths name people; what it warns of is shown."""

    def say() -> None:
        logging.getLogger("httpx").info("HTTP Request: POST /workspaces/ada")
        logging.getLogger("httpx").warning("this is amiss")

    assert [line["event"] for line in as_json(say)] == ["this is amiss"]


def test_a_line_of_a_library_has_the_bound_fields():
    """A record of the standard library, from any logger, has the fields that structlog bound."""

    def say() -> None:
        bind_contextvars(provider="mem0")
        logging.getLogger("psycopg.pool").warning("connection %s is lost", 3)

    (line,) = as_json(say)
    assert (line["event"], line["provider"]) == ("connection 3 is lost", "mem0")


@pytest.mark.slow(reason="starts a process")
def test_structlog_is_loaded_for_the_first_line():
    """A process that logs nothing loads neither structlog nor rich."""
    program = (
        "import logging, sys; from memorybus_workers import logs; logs.set_up()\n"
        "heavy = lambda: {'structlog', 'rich', 'asyncio'} & set(sys.modules)\n"
        "before = heavy(); logging.getLogger().warning('it begins'); print(before, len(heavy()))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert process.stdout == "set() 3\n"
    assert "it begins" in process.stderr
