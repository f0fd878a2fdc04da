"""A Hermes plugin in a process of its own, behind the provider contract; a fake Hermes loads it."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.fake_hermes import python_of
from helpers.hosted.hosted import (
    asking,
    calls,
    children,
    context,
    ended,
    hosted,
    is_alive,
    opened,
    say,
    sent,
    turns,
)
from helpers.processes.waiting import wait_until
from memorybus.errors import ConfigError, MissingProvider, Permanent, Transient, Unavailable
from memorybus.events import (
    ContextCompressing,
    Delegated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionRef,
    SessionStarted,
    SessionSwitched,
    TurnCompleted,
    TurnStarted,
)
from memorybus_providers.adapters.hermes import HostedHermesProvider, launch
from memorybus_providers.base import RecallContext, RecallScope

Make = Callable[..., HostedHermesProvider]


@pytest.fixture
def home(short_dir: Path) -> Path:
    """Return the instance's home; the plugin's HERMES_HOME is below."""
    return short_dir / "home"


@pytest.fixture
def make(home: Path, short_dir: Path) -> Iterator[Make]:
    """Make opened instances of one home; their processes end with the test."""
    made: list[HostedHermesProvider] = []

    def build(plugin: str = "recorder", **options: Any) -> HostedHermesProvider:
        made.append(hosted(plugin, home, python_of(short_dir), **options))
        made[-1].open()
        return made[-1]

    with ended([home]):
        yield build
        for one in made:
            one.shutdown()


@pytest.fixture
def recorder(make: Make) -> HostedHermesProvider:
    """Return an open recorder whose writes' threads are awaited."""
    return make()


@pytest.fixture
def hermes_home(home: Path) -> Path:
    """Return the plugin's HERMES_HOME."""
    return home / "hermes"


def test_every_hook_reaches_the_plugin(recorder, hermes_home):
    """Each event's hook is called with the arguments that Hermes's manager passes."""
    recorder.initialize(SessionStarted(platform="cli", title="a title"), context())
    started = TurnStarted(number=3, message="hello", model="m-1", remaining_tokens=900)
    recorder.on_turn_start(started, context())
    say(recorder, "hello")
    write = MemoryWritten(action="replace", content="new", old_text="old", provenance={"a": "b"})
    recorder.on_memory_write(write, context())
    done = Delegated(
        task="t", result="r", child_session="c", model="m-2", tokens_in=5, tool_count=0
    )
    recorder.on_delegation(done, context())
    recorder.on_session_end(SessionEnded(), context())
    (begun,) = calls(hermes_home, "initialize")
    assert begun["agent_identity"] == "default"
    assert begun["hermes_home"] == str(hermes_home)
    assert (begun["platform"], begun["session_title"]) == ("cli", "a title")
    assert "user_id" not in begun
    assert calls(hermes_home, "turn_start")[0]["number"] == 3
    told = {"model": "m-1", "remaining_tokens": 900}
    assert calls(hermes_home, "turn_start")[0]["details"] == told
    assert calls(hermes_home, "turn")[0]["messages"] == ["hello", "ok"]
    (written,) = calls(hermes_home, "memory")
    assert (written["action"], written["target"]) == ("replace", "memory")
    assert written["metadata"]["old_text"] == "old"
    assert written["metadata"]["a"] == "b"
    assert calls(hermes_home, "delegation")[0]["child"] == "c"
    known = {"model": "m-2", "tokens_in": 5, "tool_count": 0}
    assert calls(hermes_home, "delegation")[0]["details"] == known
    assert calls(hermes_home, "end")[0]["messages"] == ["hello", "ok"]


def test_answers_come_back(recorder):
    """Recall, contribution, tools and their results cross the two processes."""
    say(recorder, "the cat is called Mimi")
    assert [one.text for one in recorder.prefetch("Mimi", asking())] == ["the cat is called Mimi"]
    assert recorder.prefetch("nobody", asking()) == []
    event = ContextCompressing(messages=({"role": "user", "content": "x"},))
    assert recorder.on_pre_compress(event, context()) == "1 messages of s1"
    assert [one["name"] for one in recorder.get_tool_schemas()] == ["recorder_note"]
    assert recorder.handle_tool_call("recorder_note", {"x": 1}, context()) == {"noted": {"x": 1}}
    with pytest.raises(Permanent, match="no tool 'other'"):
        recorder.handle_tool_call("other", {}, context())


def test_tools_are_known_before_open(home, short_dir):
    """`get_tool_schemas` works on an instance that was never opened, and leaves no process."""
    with ended([home]):
        provider = hosted("recorder", home, python_of(short_dir))
        assert [one["name"] for one in provider.get_tool_schemas()] == ["recorder_note"]
        (child,) = children(home)
        wait_until(lambda: not is_alive(child), "the child ends when nobody is connected")


def test_the_oldest_signatures_are_served(make, home):
    """A plugin without later keywords and metadata is called without them, as Hermes does."""
    legacy = make("legacy")
    say(legacy, "hello")
    legacy.on_memory_write(MemoryWritten(action="add", content="c"), context())
    legacy.on_delegation(Delegated(task="t", result="r", model="m"), context())
    legacy.on_turn_start(TurnStarted(number=1, message="hi", model="m"), context())
    switched = SessionSwitched(new_id="s2", parent="s1", reason="resume")
    legacy.on_session_switch(switched, context("s2"))
    assert [one.text for one in legacy.prefetch("cats", asking())] == ["about cats"]
    lines = (home / "hermes" / "calls.jsonl").read_text().splitlines()
    assert lines[:5] == [
        '["initialize", "s1"]',
        '["turn", "hello", "ok"]',
        '["memory", "add", "memory", "c"]',
        '["delegation", "t", "r"]',
        '["turn_start", 1, "hi"]',
    ]


def test_a_turn_counts_when_its_thread_has_ended(recorder, hermes_home):
    """A write returns after the threads that it started (the truth of an ack)."""
    say(recorder, "!thread works on")
    assert turns(hermes_home) == ["!thread works on"]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("!fails", Permanent, "a thread's failure"),
        ("!complains", Unavailable, "the backend is down"),
        ("!type", Permanent, "not this one"),
    ],
)
def test_failures_come_back(recorder, text, error, said):
    """What the plugin raises, raises in a thread, or only logs fails the event, by its kind."""
    with pytest.raises(error, match=said) as raised:
        say(recorder, text)
    assert type(raised.value) is error
    say(recorder, "the next turn is served")


def test_a_child_that_hangs_is_ended(recorder, hermes_home, tmp_path):
    """A call that outlives its deadline costs the child its life, and nothing comes late (G5)."""
    hangs = tmp_path / "hangs"
    hangs.touch()
    (child,) = children(hermes_home.parent)
    with pytest.raises(Transient, match="took longer than"):
        say(recorder, f"!hang={hangs}", deadline=1.0)
    wait_until(lambda: not is_alive(child), "the child is killed")
    hangs.unlink()
    say(recorder, "served by another")
    assert turns(hermes_home) == ["served by another"]
    assert children(hermes_home.parent) != [child]


def test_a_stopped_child_is_ended(make, home):
    """A process that does not even greet is killed by the next who needs it."""
    first, second = make(), make()
    (child,) = children(home)
    os.kill(child, signal.SIGSTOP)
    second.shutdown()
    with pytest.raises(Unavailable, match="does not start"):
        say(second, "hello", deadline=1.0)
    assert is_alive(child), "it may still be loading the plugin"
    os.utime(home / "hermes-host.lock", (0, 0))  # it was started long ago
    with pytest.raises(Unavailable, match="does not start"):
        say(second, "hello", deadline=1.0)
    wait_until(lambda: not is_alive(child), "the stopped child is killed")
    say(first, "served by another")


@pytest.mark.parametrize("text", ["", "0", "1", "-1", "²", "garbage", "9" * 30])
def test_a_lock_file_that_names_no_child_ends_nobody(make, home, monkeypatch, text):
    """What a lock file says is no child's process id: no process is signalled, whatever it says."""
    first, second = make(), make()
    (child,) = children(home)
    os.kill(child, signal.SIGSTOP)
    second.shutdown()
    lock = home / "hermes-host.lock"
    lock.write_text(text)
    os.utime(lock, (0, 0))  # it was started long ago
    signalled: list[int] = []
    try:
        with monkeypatch.context() as patched:
            patched.setattr(launch.os, "killpg", lambda pid, _: signalled.append(pid))
            with pytest.raises(Unavailable, match="does not start"):
                say(second, "hello", deadline=1.0)
    finally:
        os.kill(child, signal.SIGCONT)
        lock.write_text(str(child))  # by which the test's end finds it
    assert signalled == []
    say(first, "the child was let live")


def test_a_killed_child_is_replaced_unseen(recorder, hermes_home):
    """kill -9 between two calls is no failure of any event."""
    say(recorder, "one")
    (child,) = children(hermes_home.parent)
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(child), "the child is gone")
    say(recorder, "two")
    assert turns(hermes_home) == ["one", "two"]


def test_a_child_that_ends_in_a_call_is_transient(recorder, tmp_path):
    """The event whose call ended the child may be tried again, and is found out if it repeats."""
    ends = tmp_path / "ends"
    ends.touch()
    with pytest.raises(Transient, match="ended during a call"):
        say(recorder, f"!exit={ends}")
    say(recorder, f"!exit={ends}")


def test_lane_and_recall_share_one_child(make, home, hermes_home):
    """Instances of one home use one process and, for one session, one plugin instance."""
    lane, recall = make(), make()
    say(lane, "the cat is called Mimi")
    assert recall.prefetch("Mimi", asking())
    assert len({one["pid"] for one in calls(hermes_home)}) == 1
    assert len(calls(hermes_home, "initialize")) == 1


def test_many_start_one_child(home, short_dir, hermes_home):
    """Whoever is first starts the child, the others wait for it."""
    python = python_of(short_dir)
    made = [hosted("recorder", home, python) for _ in range(6)]

    def work(number: int) -> None:
        made[number].open()
        say(made[number], f"turn {number}", f"s{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    with ended([home]):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        for one in made:
            one.shutdown()
        assert sorted(turns(hermes_home)) == [f"turn {number}" for number in range(6)]
        assert len({one["pid"] for one in calls(hermes_home)}) == 1


def test_a_child_ends_when_nobody_asks(make, home, hermes_home):
    """It shuts its instances down, and no process stays behind a worker that ended."""
    provider = make()
    say(provider, "one")
    (child,) = children(home)
    provider.shutdown()
    wait_until(lambda: not is_alive(child), "the child ends by itself")
    assert not (home / "hermes-host.sock").exists()
    assert [one["session"] for one in calls(hermes_home, "shutdown")] == ["s1"]


def test_the_least_used_instance_is_closed_in_quiet(make, hermes_home):
    """Above the limit an instance is shut down after its work, and its end is not made up (G10)."""
    provider = make(instances=2)
    for session in ("s1", "s2", "s1", "s3"):
        say(provider, "!thread", session)
    assert [one["session"] for one in calls(hermes_home, "shutdown")] == ["s2"]
    assert calls(hermes_home, "end") == []
    say(provider, "again", "s2")
    begun = [one["session"] for one in calls(hermes_home, "initialize")]
    assert begun == ["s1", "s2", "s3", "s2"]


def test_a_switch_moves_the_instance(recorder, hermes_home):
    """The plugin's instance goes on under the new id, told as Hermes tells it."""
    say(recorder, "one")
    event = SessionSwitched(new_id="s2", parent="s1", reason="compression")
    recorder.on_session_switch(event, context("s2"))
    say(recorder, "two", "s2")
    assert len(calls(hermes_home, "initialize")) == 1
    (switch,) = calls(hermes_home, "switch")
    assert (switch["before"], switch["session"], switch["reason"]) == ("s1", "s2", "compression")
    assert switch["parent_session_id"] == "s1"
    assert calls(hermes_home, "turn")[1]["messages"] == ["one", "ok", "two", "ok"]


def test_a_reset_forgets_the_conversation(recorder, hermes_home):
    """After /new the transcript begins anew; the reason has Hermes's word."""
    say(recorder, "one")
    event = SessionSwitched(new_id="s2", parent="s1", reason="reset", reset=True)
    recorder.on_session_switch(event, context("s2"))
    say(recorder, "two", "s2")
    assert calls(hermes_home, "switch")[0]["reason"] == "new_session"
    assert calls(hermes_home, "turn")[1]["messages"] == ["two", "ok"]


def test_nothing_of_one_person_is_recalled_for_another(recorder, hermes_home):
    """A plugin that does not keep persons apart gets a HERMES_HOME for each."""
    say(recorder, "Anna's cat is Mimi", user="anna")
    say(recorder, "my cat is Tom")
    assert [one.text for one in recorder.prefetch("cat", asking())] == ["my cat is Tom"]
    found = recorder.prefetch("cat", asking(user="anna"))
    assert [one.text for one in found] == ["Anna's cat is Mimi"]
    assert recorder.prefetch("cat", asking(user="bob")) == []
    assert turns(hermes_home) == ["my cat is Tom"]


OWNERS = [Scope(a, u, w) for a in ("a", "b") for u in ("ann", "ben") for w in ("", "boat", "sea")]


def test_every_owner_is_told_its_own(make):
    """Two agents, two persons, three workspaces, one session id: recalls and tools keep apart."""
    provider: Any = make(processes=4)
    for scope in OWNERS:
        told = TurnCompleted(user=f"cat {_named(scope)}", assistant="ok")
        provider.sync_turn(told, msgspec.structs.replace(context(), scope=scope))
    for scope in OWNERS:
        asked = msgspec.structs.replace(asking(), scope=RecallScope.own(scope))
        assert [one.text for one in provider.prefetch("cat", asked)] == [f"cat {_named(scope)}"]
    everywhere = msgspec.structs.replace(asking(), scope=RecallScope("a", "ann", None))
    found = {one.text for one in provider.prefetch("cat", everywhere)}
    assert found == {f"cat a/ann/{workspace}" for workspace in ("", "boat", "sea")}


def _named(scope: Scope) -> str:
    return f"{scope.agent}/{scope.user}/{scope.workspace}"


def test_a_session_has_an_instance_for_each_workspace(make, hermes_home):
    """G9: where all share a home, a session of the same id elsewhere is another session."""
    provider: Any = make(apart=False)
    for workspace in ("", "boat"):
        scope = Scope(user="ann", workspace=workspace)
        provider.sync_turn(
            TurnCompleted(user="hello"), msgspec.structs.replace(context(), scope=scope)
        )
    begun = [one["agent_workspace"] for one in calls(hermes_home, "initialize")]
    assert begun == ["hermes", "boat"]


def test_an_operator_asks_for_everyones(recorder):
    """A recall without a person finds what was written for each."""
    say(recorder, "Anna's cat is Mimi", user="anna")
    say(recorder, "my cat is Tom")
    everyone = RecallContext(RecallScope(None, None, None))
    texts = [one.text for one in recorder.prefetch("cat", everyone)]
    assert sorted(texts) == ["Anna's cat is Mimi", "my cat is Tom"]


def test_a_session_has_an_instance_for_each_person(make, hermes_home):
    """One who asks with another's session is not answered by an instance made for that one."""
    provider = make(apart=False)
    say(provider, "hello", user="anna")
    provider.prefetch("hello", asking(user="bob"))
    begun = [one["user_id"] for one in calls(hermes_home, "initialize")]
    assert begun == ["anna", "bob"]


def test_one_home_for_all_if_told_so(make, hermes_home):
    """``apart = false`` is the operator's word that everybody may share."""
    provider = make(apart=False)
    say(provider, "Anna's cat is Mimi", user="anna")
    assert turns(hermes_home) == ["Anna's cat is Mimi"]
    assert calls(hermes_home, "initialize")[0]["user_id"] == "anna"


def test_a_shared_account_serves_one_person(home):
    """Where neither plugin nor home keeps persons apart, another's events wait for an operator."""
    provider = hosted("supermemory", home, Path("/python"))
    with pytest.raises(Permanent, match="has one memory for everybody"):
        say(provider, "hello", user="anna")
    assert provider.prefetch("hello", asking(user="anna")) == []


def test_secrets_are_handed_on_and_never_shown(make, home, monkeypatch):
    """A named variable reaches the plugin; its value is in no error and no log."""
    monkeypatch.setenv("RECORDER_KEY", "very-secret-key-123")
    provider = make(env=["RECORDER_KEY"])
    with pytest.raises(Permanent, match=r"the key \*\*\* is refused") as raised:
        say(provider, "!secret")
    assert "very-secret" not in "".join(raised.value.__notes__)
    log = home / "hermes-host.log"
    wait_until(lambda: log.exists() and "the key is ***" in log.read_text(), "the plugin's print")
    assert "very-secret" not in log.read_text()


def test_other_variables_stay_here(make, monkeypatch):
    """What is not named is not handed on: a child sees no credentials of others."""
    monkeypatch.setenv("RECORDER_KEY", "very-secret-key-123")
    with pytest.raises(Permanent, match="KeyError"):
        say(make(), "!secret")


def test_a_replay_leaves_the_live_memories_alone(short_dir):
    """An instance that stands for another has its configuration and a HERMES_HOME of its own."""
    python, live = python_of(short_dir), short_dir / "theirs"
    live.mkdir()
    (live / "config.yaml").write_text("plugins: {}")
    with ended([short_dir]):
        for home, stands_for in (("hosted", ""), ("hosted-again", "hosted")):
            provider = opened(
                "recorder", short_dir / home, python, stands_for=stands_for, hermes_home=str(live)
            )
            say(provider, f"applied to {home}")
            provider.shutdown()
    assert turns(live) == ["applied to hosted"]
    again = short_dir / "hosted-again" / "hermes"
    assert turns(again) == ["applied to hosted-again"]
    assert (again / "config.yaml").read_text() == "plugins: {}"


def test_what_cannot_be_initialised_parks_nothing(recorder, hermes_home):
    """A plugin that fails at a session's start is unavailable: no event is at fault (G6)."""
    (hermes_home / "calls.jsonl").mkdir()
    with pytest.raises(Unavailable, match="could not be initialised"):
        say(recorder, "hello")
    (hermes_home / "calls.jsonl").rmdir()
    say(recorder, "hello")


def test_a_long_home_is_served(short_dir):
    """A unix socket's path is limited; a home's is not."""
    home = short_dir / ("h" * 120)
    with ended([home]):
        provider = opened("recorder", home, python_of(short_dir))
        say(provider, "hello")
        provider.shutdown()
    assert turns(home / "hermes") == ["hello"]


def test_a_plugin_that_is_not_there_is_named(home, short_dir):
    """Without the plugin the lane waits, and the message says what is missing (G6)."""
    with ended([home]):
        provider = hosted("nosuch", home, python_of(short_dir))
        with pytest.raises(Unavailable, match="hermes plugins install nosuch"):
            provider.open()


def test_a_python_without_hermes_is_named(home, tmp_path):
    """A program that cannot host says so at once, with what it printed."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no module named hermes' >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(Unavailable, match="no module named hermes"):
        hosted("recorder", home, python).open()


def test_a_missing_python_is_named(home, tmp_path):
    """A worker refuses to serve what has no Hermes, and names the option."""
    provider = hosted("recorder", home, tmp_path / "nowhere")
    with pytest.raises(MissingProvider, match="hermes_python"):
        provider.is_available(provider.config)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"instances": 0}, "must be positive"), ({"env": "KEY"}, "env"), ({"idle": "x"}, "idle")],
)
def test_wrong_options_are_named(home, options, said):
    """An option of the wrong type or size is refused when the instance is made."""
    with pytest.raises(ConfigError, match=said):
        hosted("recorder", home, Path("/python"), **options)


@pytest.mark.parametrize(
    ("plugin", "note"),
    [
        ("holographic", "; the bus has a kind 'holographic' of its own"),
        ("supermemory", "; turns that count are in its memory until the session ends"),
        ("recorder", ""),
    ],
)
def test_the_note_names_what_people_should_know(home, plugin, note):
    """People are told of a kind that promises more, and of what a crash loses (G4)."""
    provider = hosted(plugin, home, Path("/python"))
    assert provider.note == f"hosted Hermes plugin {plugin}{note}"
    assert provider.delivery == "blind"


def test_the_prompt_block_is_the_plugins(recorder):
    """A plugin without a block adds nothing to the system prompt."""
    assert recorder.system_prompt_block(RecallScope()) == ""


def test_a_prompt_begins_no_session_of_its_own(recorder, hermes_home):
    """The block is the session's that recalled last: a backend is not told of another one."""
    scope = RecallScope("default", "default", "")
    say(recorder, "hello")
    recorder.prefetch("hello", RecallContext(scope, SessionRef("s1", "s1"), deadline=60.0))
    assert recorder.system_prompt_block(scope) == ""
    assert len(calls(hermes_home, "initialize")) == 1


def test_a_person_who_is_not_served_has_no_prompt(home):
    """Where nobody is kept apart others have nothing, which is no failure: it pauses no recalls."""
    provider = hosted("supermemory", home, Path("/nowhere"))
    assert provider.system_prompt_block(RecallScope("default", "stranger", "")) == ""


def test_a_writer_that_never_ends_is_waited_for(make, hermes_home):
    """G4: a thread that waits for more at its queue has done what the call gave it, no sooner."""
    writer = make("writer")
    for number in range(3):
        say(writer, f"turn {number}", deadline=20.0)
        assert sent(hermes_home) == [f"turn {one}" for one in range(number + 1)]


@pytest.mark.parametrize("refusals", [1, 4])
def test_refusals_leave_one_copy(make, hermes_home, refusals):
    """G4: an instance whose write failed sends nothing of it again, not even at its end."""
    writer = make("writer")
    say(writer, "before")
    (hermes_home / "down").touch()
    for _ in range(refusals):
        with pytest.raises(Unavailable, match="the backend is down"):
            say(writer, "refused")
    (hermes_home / "down").unlink()
    say(writer, "refused")
    (child,) = children(hermes_home.parent)
    writer.shutdown()
    wait_until(lambda: not is_alive(child), "the child ends by itself")
    assert sent(hermes_home) == ["before", "refused"]


def test_a_thread_that_cannot_be_judged_is_named(make, home):
    """The call takes too long, the log names the thread, and a synchronous plugin goes on."""
    writer = make("writer")
    with pytest.raises(Transient, match="took longer than"):
        say(writer, "!polls", deadline=8.0)
    assert "sync_turn waits for the thread poller" in (home / "hermes-host.log").read_text()
    writer.shutdown()
    say(make("writer", settle="synchronous"), "!polls", deadline=20.0)


def test_a_plugin_may_declare_itself_synchronous(make, hermes_home):
    """Where the plugin has the attribute ``synchronous``, no thread is awaited."""
    hermes_home.mkdir(parents=True)
    (hermes_home / "synchronous").touch()
    say(make("writer"), "!polls", deadline=20.0)


def test_a_plugin_that_begins_late_gets_its_first_turn(make, hermes_home):
    """G4: a turn waits for the threads of `initialize`; one that comes sooner would be lost."""
    hermes_home.mkdir(parents=True)
    (hermes_home / "late").touch()
    writer = make("writer")
    writer.on_turn_start(TurnStarted(number=1, message="the first"), context())
    say(writer, "the first", deadline=20.0)
    assert sent(hermes_home) == ["the first"]


def test_a_plugin_that_cannot_begin_loses_no_turn(make, hermes_home):
    """G4: what a thread of `initialize` reports makes the lane wait, and the next try begins."""
    writer = make("writer")
    (hermes_home / "late").touch()
    (hermes_home / "down").touch()
    with pytest.raises(Unavailable, match="could not begin its session"):
        say(writer, "the first", deadline=20.0)
    (hermes_home / "down").unlink()
    say(writer, "the first", deadline=20.0)
    assert sent(hermes_home) == ["the first"]


def test_a_failure_forgets_no_conversation(make, hermes_home, tmp_path):
    """The instance that takes a failed one's place hands over the transcript so far."""
    recorder, down = make(), tmp_path / "down"
    say(recorder, "one")
    down.touch()
    with pytest.raises(Unavailable):
        say(recorder, f"!down={down}")
    down.unlink()
    say(recorder, f"!down={down}")
    assert len(calls(hermes_home, "initialize")) == 2
    assert calls(hermes_home, "turn")[-1]["messages"] == ["one", "ok", f"!down={down}", "ok"]


def test_a_failed_switch_is_made_again(make, hermes_home):
    """The switch is repeated by an instance that is in the session which was left."""
    recorder, down = make(), hermes_home / "no-switch"
    say(recorder, "one")
    down.touch()
    event = SessionSwitched(new_id="s2", parent="s1", reason="compression")
    with pytest.raises(Unavailable):
        recorder.on_session_switch(event, context("s2"))
    down.unlink()
    recorder.on_session_switch(event, context("s2"))
    say(recorder, "two", "s2")
    assert [one["session"] for one in calls(hermes_home, "initialize")] == ["s1", "s1"]
    (switch,) = calls(hermes_home, "switch")
    assert (switch["before"], switch["session"]) == ("s1", "s2")
    assert calls(hermes_home, "turn")[1]["messages"] == ["one", "ok", "two", "ok"]


def test_what_a_dead_worker_asked_is_not_done_again(make, hermes_home):
    """G4: the next worker asks a process that has done it, and is given the answer."""
    first, second = make(), make()
    event = context()
    said = first.handle_tool_call("recorder_note", {"x": 1}, event)
    first.shutdown()
    assert second.handle_tool_call("recorder_note", {"x": 1}, event) == said
    say(second, "one", event=event.event_id)
    assert len(calls(hermes_home, "tool")) == len(calls(hermes_home, "turn")) == 1


def test_failures_leave_no_end_of_threads(make, hermes_home):
    """G10: a process that failed instances have filled with threads makes way for another."""
    writer = make("writer", instances=1)
    (hermes_home / "down").touch()
    before = children(hermes_home.parent)
    for _ in range(4):
        with pytest.raises(Unavailable, match="the backend is down"):
            say(writer, "refused")
    (hermes_home / "down").unlink()
    say(writer, "refused")
    assert children(hermes_home.parent) != before
    assert sent(hermes_home) == ["refused"]


CHAT = {
    "chat_id": "-100",
    "chat_name": "Family",
    "chat_type": "group",
    "thread_id": "9",
    "user_name": "Anna",
    "user_id_alt": "anna@example.org",
    "gateway_session_key": "agent:main:telegram:group:-100:9",
}
BEGUN = SessionStarted(platform="telegram", title="Plans", details={**CHAT, "cwd": "/srv/bot"})


def begun(short_dir: Path, session: str = "s1") -> list[dict[str, Any]]:
    """Return what the plugin was told at each opening of a session."""
    found = calls(short_dir / "home" / "hermes", "initialize")
    ours = ("hook", "session", "pid", "hermes_home")
    told = [one for one in found if one["session"] == session]
    return [{name: one[name] for name in one if name not in ours} for one in told]


TOLD = {
    **CHAT,
    "platform": "telegram",
    "agent_context": "primary",
    "agent_identity": "default",
    "agent_workspace": "hermes",
    "session_title": "Plans",
}


def test_a_plugin_is_told_what_hermes_tells(make, short_dir):
    """The chat, the thread, names and the gateway's key reach `initialize`, and nothing of ours."""
    make().initialize(BEGUN, context())
    assert begun(short_dir) == [TOLD]


def test_who_opens_it_later_is_told_the_same(make, short_dir):
    """An instance that was closed, and another worker, open a session as it began."""
    first = make(instances=1)
    first.initialize(BEGUN, context())
    say(first, "elsewhere", "s2")  # closes the instance of s1
    say(first, "back")
    first.shutdown()
    say(make(instances=2), "from another worker")
    assert begun(short_dir) == [TOLD] * len(begun(short_dir))
    assert len(begun(short_dir)) >= 2


@pytest.mark.parametrize("reason", ["compression", "reset", "resume"])
def test_a_session_that_goes_on_is_told_the_same(make, short_dir, reason):
    """After a switch the conversation is where it was, also for an instance opened anew."""
    provider = make(instances=1)
    provider.initialize(BEGUN, context())
    event = SessionSwitched(new_id="s2", parent="s1", reason=reason, reset=reason == "reset")
    provider.on_session_switch(event, context("s2"))
    say(provider, "elsewhere", "s3")  # closes the instance
    say(provider, "on", "s2")
    assert begun(short_dir, "s2") == [TOLD]


def test_a_branch_is_told_what_its_parent_was(make, short_dir):
    """A branch begins with what its own beginning says, and its parent's chat."""
    provider = make()
    provider.initialize(BEGUN, context())
    provider.initialize(SessionStarted(parent="s1", reason="branch", title="B"), context("s2"))
    assert begun(short_dir, "s2") == [{**TOLD, "session_title": "B"}]


def test_a_session_of_before_has_no_chat(make, short_dir):
    """A session whose beginning never came is opened without details, for its own person only."""
    say(make(), "hello")
    (told,) = begun(short_dir)
    assert told == {n: TOLD[n] for n in ("agent_context", "agent_identity", "agent_workspace")} | {
        "platform": "cli"
    }


def test_a_recall_before_the_beginning_names_nothing(make, short_dir):
    """Who asks before a session's beginning is applied opens another instance, not the writers'."""
    provider = make()
    provider.prefetch("anything", asking())
    provider.initialize(BEGUN, context())
    say(provider, "hello")
    assert [one.get("chat_id", "") for one in begun(short_dir)] == ["", "-100"]
    assert len(provider.prefetch("hello", asking())) == 1
    assert len(begun(short_dir)) == 2


def test_details_change_no_identity(make, short_dir):
    """What an event tells of its session never says whose it is, or breaks the call."""
    hostile = dict.fromkeys(
        ("self", "cls", "session_id", "user_id", "agent_identity", "hermes_home", "memorybus"),
        "another's",
    )
    event = SessionStarted(details={**hostile, "no name": "x", "chat_id": "7"})
    make().initialize(event, context())
    (told,) = begun(short_dir)
    assert told == {
        "platform": "cli",
        "agent_context": "primary",
        "agent_identity": "default",
        "agent_workspace": "hermes",
        "chat_id": "7",
    }


@pytest.mark.parametrize(
    ("plugin", "tool", "arguments", "user", "said"),
    [
        ("honcho", "honcho_search", {"query": "x", "peer": "anna"}, "default", "another's"),
        ("honcho", "honcho_conclude", {"list": True, "peer": ["anna"]}, "bob", "another's"),
        ("retaindb", "retaindb_list_files", {}, "bob", "all persons share"),
        ("retaindb", "retaindb_upload_file", {"local_path": "/x"}, "bob", "all persons share"),
    ],
)
def test_a_tool_reaches_nobody_else(short_dir, plugin, tool, arguments, user, said):
    """A tool that would read or write another person's memories is answered, and not run."""
    provider = hosted(plugin, short_dir / "home", Path("/nowhere/python"))
    answer = provider.handle_tool_call(tool, arguments, context(user=user))
    assert said in answer["error"]


def test_a_shared_account_refuses_others_by_name(short_dir):
    """Where nothing keeps persons apart, who is not the instance's own is refused by name."""
    provider = hosted("openviking", short_dir / "home", Path("/nowhere/python"), user="anna")
    for attempt in (say, lambda one, text, user: one.initialize(BEGUN, context(user=user))):
        with pytest.raises(Permanent, match="configure one for that of 'bob'"):
            attempt(provider, "x", user="bob")
    assert not (short_dir / "home").exists()  # and nothing is noted of them
