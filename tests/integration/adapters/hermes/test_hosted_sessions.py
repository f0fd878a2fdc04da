"""What a hosted plugin is told of a session: all that Hermes tells, whoever opens it, and when."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_hermes import python_of
from helpers.hosted.hosted import asking, calls, context, ended, hosted, say
from memorybus.errors import Permanent
from memorybus.events import SessionStarted, SessionSwitched
from memorybus_providers.adapters.hermes import HostedHermesProvider

Make = Callable[..., HostedHermesProvider]

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


@pytest.fixture
def make(short_dir: Path) -> Iterator[Make]:
    """Make opened instances of one home; their processes end with the test."""
    made: list[HostedHermesProvider] = []

    def build(**options: Any) -> HostedHermesProvider:
        made.append(hosted("recorder", short_dir / "home", python_of(short_dir), **options))
        made[-1].open()
        return made[-1]

    with ended([short_dir / "home"]):
        yield build
        for provider in made:
            provider.shutdown()


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
