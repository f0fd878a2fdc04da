"""The parts of hosting a Hermes plugin: frames, failures, adapters, signatures, masks."""

import asyncio
import contextlib
import json
import logging
import queue
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.processes.waiting import wait_until
from memorybus.errors import ConfigError, MissingProvider
from memorybus.events import MemoryWritten, Scope, SessionStarted, SessionSwitched
from memorybus_providers.adapters.hermes import host, launch, requests
from memorybus_providers.adapters.hermes.child import frames, hooks, instances, output
from memorybus_providers.adapters.hermes.child.failures import (
    PERMANENT,
    TRANSIENT,
    UNAVAILABLE,
    CallRefused,
    answer_of,
    meaning_of,
)
from memorybus_providers.adapters.hermes.child.watch import Watch, is_idle
from memorybus_providers.adapters.hermes.homes import PluginHome, make_home, place_of, user_id_of
from memorybus_providers.adapters.hermes.plugins import NATIVE_KINDS
from memorybus_providers.owners import Owner
from memorybus_providers.registry import registered_kinds

Give = Callable[[Callable[[], Any]], Any]
FIRST = Owner("default", "default", "")


class StatusError(Exception):
    """As HTTP libraries raise it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.response = SimpleNamespace(status_code=status)


class ConnectTimeout(Exception):
    """Named as httpx and requests name it."""


class ReadTimeout(Exception):
    """Named as httpx and requests name it."""


class Wrapped(Exception):
    """What a plugin raises instead of what happened."""


def wrapped(cause: Exception) -> Exception:
    """Return an error that was raised from another."""
    error = Wrapped("could not store")
    error.__cause__ = cause
    return error


def sqlite_error(code: int) -> sqlite3.OperationalError:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(), UNAVAILABLE),
        (ConnectTimeout(), UNAVAILABLE),
        (ReadTimeout(), TRANSIENT),
        (TimeoutError(), TRANSIENT),
        (StatusError(500), TRANSIENT),
        (StatusError(429), TRANSIENT),
        (StatusError(503), UNAVAILABLE),
        (StatusError(401), UNAVAILABLE),
        (StatusError(400), PERMANENT),
        (sqlite_error(sqlite3.SQLITE_BUSY), TRANSIENT),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), TRANSIENT),
        (sqlite_error(sqlite3.SQLITE_LOCKED), TRANSIENT),
        (sqlite_error(sqlite3.SQLITE_ERROR), PERMANENT),
        (sqlite3.OperationalError("no table is called locked"), PERMANENT),
        (wrapped(sqlite_error(sqlite3.SQLITE_BUSY)), TRANSIENT),
        (ImportError("no mem0"), UNAVAILABLE),
        (OSError("disk full"), TRANSIENT),
        (RuntimeError("POST /v1/memory failed (503): closed"), UNAVAILABLE),
        (RuntimeError("no room for 503 facts"), PERMANENT),
        (TypeError("not this one"), PERMANENT),
        (wrapped(ConnectionResetError()), UNAVAILABLE),
        (SystemExit(1), PERMANENT),
    ],
)
def test_a_plugins_error_means(error, expected):
    """Errors of any library are told apart: try again, wait for the backend, refuse (G6)."""
    assert meaning_of(error) == expected


def test_an_error_is_told_without_secrets():
    """Neither text nor trace of a failure carries a credential."""
    mask = output.Mask(["very-secret", "abc"])
    answer = answer_of(ValueError("the key very-secret of abc"), mask)
    assert answer["message"] == "ValueError: the key *** of abc"
    assert "very-secret" not in answer["trace"]


def test_secrets_of_an_env_file_are_known(tmp_path):
    """What Hermes loads from ``.env`` is masked as well."""
    (tmp_path / ".env").write_text("# a comment\nKEY='first-secret'\nexport OTHER=second-secret\n")
    assert output.kept_secrets(tmp_path / ".env") == ["first-secret", "second-secret"]
    assert output.kept_secrets(tmp_path / "nowhere") == []


def test_output_is_bounded(tmp_path, monkeypatch):
    """A plugin that prints without end fills two files and no disk (G10)."""
    monkeypatch.setattr(output, "MAX_FILE_BYTES", 100)
    for _ in range(50):
        output._append(tmp_path / "host.log", "ten bytes\n")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 250


@pytest.fixture
def pair() -> Any:
    """Return two connected sockets."""
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_frames_cross(pair):
    """An object arrives as it was sent; an end is told from an object."""
    frames.send(pair[0], {"text": "ä\ud800", "n": [1, None]})
    pair[0].close()
    assert frames.receive(pair[1]) == {"text": "ä\ud800", "n": [1, None]}
    assert frames.receive(pair[1]) is None


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\xff\xff\xff\xff", "is announced"),
        (b"\0\0\0\3[1]", "holds an object"),
        (b"\0\0\0\1x", "not JSON"),
    ],
)
def test_what_is_no_frame_is_refused(pair, raw, said):
    """Bytes of a stranger are neither believed nor kept (G10)."""
    pair[0].sendall(raw)
    with pytest.raises(frames.FrameError, match=said):
        frames.receive(pair[1])


def test_a_frame_is_bounded(pair, monkeypatch):
    """What is too long is refused by the sender, before a byte is sent (G10)."""
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 10)
    with pytest.raises(frames.FrameError, match="more than"):
        frames.send(pair[0], {"text": "longer than ten bytes"})


def sync_old(user: str, assistant: str) -> None:
    """Take the oldest arguments."""


def sync_any(user: str, assistant: str, **kwargs: Any) -> None:
    """Take anything."""


def test_keywords_are_dropped_for_hooks_that_lack_them():
    """The probe is Hermes's own (`_provider_sync_accepts_messages`)."""
    assert hooks.accepted_keywords(sync_old, {"session_id": "s", "messages": []}) == {}
    assert hooks.accepted_keywords(sync_any, {"session_id": "s"}) == {"session_id": "s"}


@pytest.mark.parametrize(
    ("hook", "mode"),
    [
        (lambda action, target, content, metadata=None: None, "keyword"),
        (lambda action, target, content, **kwargs: None, "keyword"),
        (lambda action, target, content, extra: None, "positional"),
        (lambda action, target, content: None, "legacy"),
    ],
)
def test_metadata_is_passed_as_the_hook_takes_it(hook, mode):
    """The probe is Hermes's own (`_provider_memory_write_metadata_mode`)."""
    assert hooks.metadata_mode(hook) == mode


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"name": "find"}, "find"),
        ({"type": "function", "function": {"name": "find"}}, "find"),
        ({"function": "find"}, None),
        ("find", None),
    ],
)
def test_a_plugin_s_tool_is_found_in_either_form_of_its_schema(schema, name):
    """Hermes takes OpenAI's outer object, too: such a tool is called, and no dead letter."""
    calls: list[str] = []

    def call(tool: str, arguments: Any) -> str:
        calls.append(tool)
        return "{}"

    plugin = SimpleNamespace(get_tool_schemas=lambda: [schema], handle_tool_call=call)
    assert hooks.tool_name(schema) == name
    with nullcontext() if name else pytest.raises(CallRefused):
        hooks.handle_tool_call(plugin, {"tool": "find", "arguments": {}})
    assert calls == (["find"] if name else [])


@contextlib.contextmanager
def in_queue() -> Iterator[tuple[threading.Thread, Give]]:
    """Return a thread that takes its work from a queue, and how it gets some."""
    jobs: queue.Queue[Any] = queue.Queue()

    def write() -> None:
        while (job := jobs.get()) is not None:
            job()

    thread = threading.Thread(target=write)
    thread.start()
    yield thread, jobs.put
    jobs.put(None)
    thread.join()


@contextlib.contextmanager
def in_executor() -> Iterator[tuple[threading.Thread, Give]]:
    """Return an executor's thread, and how it gets work."""
    with ThreadPoolExecutor(1) as executor:
        thread = executor.submit(threading.current_thread).result()
        yield thread, executor.submit


@contextlib.contextmanager
def in_loop() -> Iterator[tuple[threading.Thread, Give]]:
    """Return a thread with an event loop, and how that gets work."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield thread, lambda work: asyncio.run_coroutine_threadsafe(asyncio.to_thread(work), loop)
    asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("made", [in_queue, in_executor, in_loop])
def test_a_worker_rests_when_it_has_no_work(made):
    """A thread that never ends is done when it waits for more, and not while it works."""
    began, may_end = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        may_end.wait()

    with made() as (thread, give):
        wait_until(lambda: is_idle(thread), "it waits for its first work")
        give(work)
        assert began.wait(30)
        assert not is_idle(thread)
        may_end.set()
        wait_until(lambda: is_idle(thread), "it waits for more")
        assert thread.is_alive()
    assert is_idle(thread)


def opened_instances(make: Any, limit: int) -> instances.PluginInstances:
    """Return the instances of a plugin."""
    return instances.PluginInstances(make, Watch(Path("/plugin")), limit)


def test_only_an_idle_instance_is_shut_down():
    """Above the limit the least used one goes, but none that is being called (G10)."""
    log: list[str] = []
    names = iter("abc")

    def make() -> SimpleNamespace:
        name = next(names)
        return SimpleNamespace(
            name=name,
            initialize=lambda session_id: log.append(f"{name} is {session_id}"),
            shutdown=lambda: log.append(f"{name} is shut down"),
        )

    opened = opened_instances(make, 1)
    opened.instance_for({"session_id": "s1"})
    with opened.instance_for({"session_id": "s1"}).lock:
        opened.instance_for({"session_id": "s2"})  # s1 is being called: it stays, above the limit
    opened.instance_for({"session_id": "s3"})
    assert log == ["a is s1", "b is s2", "c is s3", "a is shut down", "b is shut down"]


def test_the_instance_of_the_same_chat_goes_on():
    """A switch moves the instance that writes, not one that a recall opened; else the latest."""

    def make() -> SimpleNamespace:
        return SimpleNamespace(name="", initialize=lambda **_: None, shutdown=lambda: None)

    opened = opened_instances(make, 9)
    writes = opened.instance_for({"session_id": "s1", "chat_id": "1"})
    asked = opened.instance_for({"session_id": "s1"})
    assert asked is not writes
    for parent, session_id, chat in (("s1", "s1", "1"), ("s1", "s2", "1"), ("s2", "s0", "2")):
        session = {"session_id": session_id, "chat_id": chat}
        assert opened.begin_switch(parent, session) is writes
        opened.finish_switch(parent, session)
    assert opened.begin_switch("s2", {"session_id": "s3", "chat_id": "1"}) is None
    other = {"session_id": "s4", "chat_id": "2", "user_id": "bob"}
    assert opened.begin_switch("s0", other) is None


def record(path: Path, level: int, message: str, *args: object) -> logging.LogRecord:
    """Return a log record of a file."""
    return logging.LogRecord("a.plugin", level, str(path), 1, message, args, None)


def test_complaints_fail_the_write_they_fall_into(tmp_path, capsys):
    """The plugin's own failures count, its advice, others' and quiet ones do not, some quiet do."""
    watch = Watch(tmp_path)
    watch.emit(record(tmp_path / "a.py", logging.WARNING, "before any write"))
    with watch.call(writes=True) as call:
        watch.emit(record(Path("/else/a.py"), logging.ERROR, "not the plugin's"))
        watch.emit(record(tmp_path / "a.py", logging.DEBUG, "all is well"))
        watch.emit(
            record(tmp_path / "a.py", logging.DEBUG, "/version probe failed: %s", KeyError())
        )
        watch.emit(record(tmp_path / "a.py", logging.WARNING, "the server is old, upgrade it"))
        assert call.failures == []
        watch.emit(record(tmp_path / "a.py", logging.DEBUG, "mirror failed: %s", KeyError("x")))
        watch.emit(record(tmp_path / "a.py", logging.WARNING, "sync failed"))
        watch.emit(record(tmp_path / "a.py", logging.WARNING, "sync: %s", OSError("x")))
        watch.emit(record(tmp_path / "a.py", logging.ERROR, "no more room"))
    assert [type(one) for one in call.failures] == [KeyError, CallRefused, OSError, CallRefused]
    assert "sync failed" in capsys.readouterr().err


def test_a_recalls_complaints_are_its_own(tmp_path):
    """What goes wrong in a recall beside a write does not fail the write."""
    watch = Watch(tmp_path)

    def recall() -> None:
        with watch.call(writes=False):
            watch.emit(record(tmp_path / "a.py", logging.WARNING, "prefetch failed"))

    with watch.call(writes=True) as call:
        beside = threading.Thread(target=recall)
        beside.start()
        beside.join()
    assert call.failures == []


def test_what_is_prepared_beside_a_write_fails_it_not(tmp_path):
    """While a plugin is made ready its complaints are no write's; then they are again."""
    watch = Watch(tmp_path)
    with watch.call(writes=True) as call:
        with watch.call(writes=False):
            watch.emit(record(tmp_path / "a.py", logging.WARNING, "prewarming failed"))
        assert call.failures == []
        watch.emit(record(tmp_path / "a.py", logging.WARNING, "sync failed"))
    assert len(call.failures) == 1


def test_hermes_is_told_what_it_knows():
    """Optional values are given only if there are some; the nobody of the bus has no user id."""
    begun = SessionStarted(platform="telegram", title="t", details={"chat_id": "7", "cwd": "/x"})
    scope, known = Scope(agent="coder", user="anna"), requests.session_facts(begun)
    told = requests.session_args(scope, "s", Path("/h"), "anna", known)
    assert told == {
        "session_id": "s",
        "platform": "telegram",
        "hermes_home": "/h",
        "agent_context": "primary",
        "agent_identity": "coder",
        "agent_workspace": "hermes",
        "user_id": "anna",
        "session_title": "t",
        "chat_id": "7",
    }
    assert "user_id" not in requests.session_args(Scope(), "s", Path("/h"), "", {})


def test_reasons_have_hermess_words():
    """An undo has no reason in Hermes, a reset is a new session."""
    undone = requests.switch_args(SessionSwitched(new_id="s", reason="rewind", rewound=True))
    assert (undone["reason"], undone["rewound"]) == ("", True)
    assert (
        requests.switch_args(SessionSwitched(new_id="s", reason="reset"))["reason"] == "new_session"
    )


def test_requests_are_json():
    """Whatever an event carries can cross."""
    event = MemoryWritten(action="remove", store="user", old_text="old")
    context: Any = SimpleNamespace(session=SimpleNamespace(id="s"), scope=Scope(platform="cli"))
    args = requests.memory_write_args(event, context)
    assert json.loads(json.dumps(args))["metadata"]["old_text"] == "old"


def test_an_owners_home_has_the_operators_configuration(tmp_path):
    """Keys and settings are shared by link, memories are not."""
    own = PluginHome(tmp_path, tmp_path / "hermes")
    make_home(own.home, own.home, "mem0")
    for name in ("config.yaml", "mem0.json", "memory_store.db", "other.json"):
        (own.home / name).write_text(name)
    owner = place_of(own, Owner("default", "anna", ""), FIRST)
    assert place_of(own, FIRST, FIRST) == own
    for _ in range(2):
        make_home(owner.home, own.home, "mem0")
    assert sorted(path.name for path in owner.home.iterdir()) == ["config.yaml", "mem0.json"]
    assert (owner.home / "config.yaml").read_text() == "config.yaml"


def test_every_owner_has_a_home_and_a_user_id_of_its_own(tmp_path):
    """Agents, persons and workspaces are told apart, whatever their names are made of."""
    own = PluginHome(tmp_path, tmp_path / "hermes")
    names = ("default", "anna", "a\0b", "b", "a", "\0b")
    owners = {Owner(a, u, w) for a in names for u in names for w in ("", *names)}
    ids = {owner: user_id_of(owner, FIRST) for owner in owners}
    impostors = {Owner("default", made, "") for made in ids.values() if "~" in made}
    ids |= {owner: user_id_of(owner, FIRST) for owner in impostors}
    assert len(set(ids.values())) == len(ids) == len({place_of(own, one, FIRST) for one in ids})
    assert ids[FIRST] == ""
    assert ids[Owner("default", "anna", "")] == "anna"


def test_the_python_of_the_hermes_command_is_found(tmp_path, monkeypatch):
    """Without the option, the first line of ``hermes`` on PATH names the installation."""
    command = tmp_path / "hermes"
    command.write_text(f"#!{sys.executable}\nprint()\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.find_python("") == Path(sys.executable)
    command.write_text("#!/bin/sh\n")
    with pytest.raises(MissingProvider, match="hermes_python"):
        launch.find_python("")


def test_a_kind_names_a_plugin():
    """``hermes:`` alone is no kind; a directory's name is the plugin's."""
    with pytest.raises(ConfigError, match="must name a plugin"):
        host("")
    with pytest.raises(ConfigError, match="every event again"):
        host("memorybus")
    made: Any = host("/some/where/mine")
    assert (made.plugin, made.directory, made.kind) == (
        "mine",
        "/some/where/mine",
        "hermes:/some/where/mine",
    )


def test_a_native_kind_is_one_that_can_be_configured():
    """A kind that the note of a hosted plugin names exists."""
    assert set(registered_kinds()).issuperset(NATIVE_KINDS)
