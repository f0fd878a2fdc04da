"""The parts that providers of services are made of: options, tools, deadlines, words, entries."""

import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from memorybus.errors import ConfigError, MissingProvider, Permanent, install_command
from memorybus.events import Delegated, MemoryWritten, TurnCompleted
from memorybus.testing import FakeClock
from memorybus_providers.base import HookContext, ProviderConfig
from memorybus_providers.options import read_options
from memorybus_providers.remote import texts
from memorybus_providers.remote.http import DEADLINE_SHARE, SharedDeadline
from memorybus_providers.remote.options import ServerOptions, read_private
from memorybus_providers.remote.provider import (
    RemoteProvider,
    RemoteTool,
    ToolSet,
    service_capabilities,
)
from memorybus_providers.remote.texts import parse_milliseconds


class Look(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments."""

    query: str


TOOLS: ToolSet[Look] = ToolSet(
    {"look": RemoteTool(Look, "Look.", reads=True), "keep": RemoteTool(Look, "Keep.")}
)


class Options(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service's options."""

    base_url: str = "http://there"


class Connection:
    """A client that counts how often it is closed."""

    closed = 0

    def close(self) -> None:
        """Count."""
        self.closed += 1


class There(RemoteProvider[Connection]):
    """A provider of a service without hooks."""

    kind = "there"
    capabilities = service_capabilities(TOOLS, frozenset({TurnCompleted}))
    package = "msgspec"
    options_type = Options
    toolset = TOOLS

    def connect(self) -> Connection:
        """Return a client."""
        return Connection()

    def run_tool(self, call: Any, ctx: HookContext) -> dict[str, Any]:
        """Repeat the question."""
        return {"asked": call.query}


class Lacking(There):
    """One whose client is not installed."""

    def connect(self) -> Connection:
        """Import what is not there."""
        raise ImportError("No module named 'there'")


def config(tmp_path: Path, **options: Any) -> ProviderConfig:
    """Return an instance's configuration."""
    return ProviderConfig(name="there", home=tmp_path, options=options)


@pytest.mark.parametrize(
    ("options", "said_of"),
    [
        ({"base_url": "ftp://there"}, "base_url"),
        ({"prefix": "Ours", "timeout": 0.0}, "prefix .*; timeout must be positive"),
        ({"timeout": "long"}, "timeout"),
        ({"strange": 1}, "strange"),
    ],
)
def test_options_that_break_a_rule_are_named(tmp_path, options, said_of):
    """All that is wrong is said at once, with the instance's name."""
    with pytest.raises(ConfigError, match=f"provider there: .*{said_of}"):
        read_options(config(tmp_path, **options), Options)


def test_options_have_their_defaults(tmp_path):
    """What is not given is as the service's struct says."""
    assert read_options(config(tmp_path, prefix="ours"), Options) == Options(prefix="ours")


def test_a_provider_reads_its_options_when_it_is_made(tmp_path):
    """A wrong option is refused before anything is opened."""
    assert There(config(tmp_path, prefix="ours")).config.options == {"prefix": "ours"}
    with pytest.raises(ConfigError, match="provider there: timeout must be positive"):
        There(config(tmp_path, timeout=0.0))


def test_a_shell_is_opened_once_and_closed_twice(tmp_path):
    """Before and after it has no client, and says so."""
    provider = There(config(tmp_path))
    assert provider.is_available(provider.config)
    with pytest.raises(Permanent, match="not open"):
        _ = provider.client
    provider.open()
    client = provider.client
    provider.open()
    assert provider.client is client
    provider.shutdown()
    provider.shutdown()
    assert client.closed == 1


def test_what_is_not_installed_is_named_with_its_extra(tmp_path):
    """The advice is a command."""
    with pytest.raises(MissingProvider, match=re.escape(install_command("there"))):
        Lacking(config(tmp_path)).open()


def test_tools_are_shown_read_and_refused():
    """A call that does not fit is answered with what is wrong, never with an error."""
    assert TOOLS.reading == {"look"}
    assert [one["name"] for one in TOOLS.schemas()] == ["look", "keep"]
    assert TOOLS.schemas()[0]["parameters"]["required"] == ["query"]
    assert TOOLS.parse_arguments("look", {"query": "tea"}) == Look("tea")
    assert "look" in str(TOOLS.parse_arguments("look", {"q": 1}))
    assert TOOLS.parse_arguments("burn", {}) == "there is no tool 'burn'; there are look, keep"


def test_requests_of_a_hook_share_its_deadline():
    """An inner block has no more time than the outer one; outside there is no end."""
    clock = FakeClock()
    deadline = SharedDeadline(clock)
    with deadline.within(10.0):
        clock.advance(4.0)
        assert deadline.seconds_left() == pytest.approx(10.0 * DEADLINE_SHARE - 4.0)
        with deadline.within(100.0):
            assert deadline.seconds_left() == pytest.approx(10.0 * DEADLINE_SHARE - 4.0)
        clock.advance(5.0)
        assert deadline.seconds_left() < 0
    assert deadline.seconds_left() == float("inf")


def test_words_have_a_side_and_a_name():
    """Nobody said what the host wrote; a blank side said nothing."""
    turn = TurnCompleted(user="Hello.", assistant=" ", user_name="Ada")
    assert texts.from_turn(turn) == [texts.RemoteUtterance(True, "Ada", "Hello.")]
    assert texts.from_turn(TurnCompleted(user="Hello.", synthetic=True)) == []
    told = texts.from_delegation(Delegated(task="count", result="nine"))
    assert texts.join_lines(told) == "Task: count\nResult: nine"


@pytest.mark.parametrize(
    ("held", "gone"),
    [
        (["a cat", "a dog"], ["a cat"]),
        (["a cat", "a cat"], ["a cat", "a cat"]),
        (["a cat", "two cats"], []),
        (["a dog"], []),
    ],
)
def test_an_old_text_means_one_text_or_none(held, gone):
    """Where different entries hold it none is touched; one may be there several times."""
    write = MemoryWritten(action="remove", store="user", old_text=" cat ")
    assert texts.replaced_entries(write, held, str) == gone
    addition = MemoryWritten(action="add", store="user", content="x", old_text="cat")
    assert texts.replaced_entries(addition, held, str) == []


def test_a_secret_file_is_its_owners_alone(tmp_path):
    """What others may read is refused, and what is not there is named by its option."""
    file = tmp_path / "secret"
    file.write_text("s")
    file.chmod(stat.S_IRUSR)
    assert read_private(file, "we", "option") == "s"
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_private(file, "we", "option")
    with pytest.raises(ConfigError, match="option cannot be read"):
        read_private(tmp_path / "none", "we", "option")


@pytest.mark.parametrize(
    ("text", "at"), [("1700", 1700), ("", 0), (None, 0), ("-1", 0), ("²", 0), ("9" * 16, 0)]
)
def test_a_time_that_is_none_is_zero(text, at):
    """What others wrote beside a text is data."""
    assert parse_milliseconds(text) == at
