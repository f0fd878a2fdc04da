"""Two persons, their chats, two agents: the same conversations for Hermes and for the bus."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from memorybus_hermes.plugin import MemoryManager

_PROGRAM = Path(__file__).parent / "hermes_talks.py"


class Talk(msgspec.Struct, frozen=True):
    """One conversation of one turn and one memory write.

    Attributes:
        session: its id.
        told: what Hermes tells `initialize`, without the session's id and where its files are.
        text: what the person says.
        fact: what the agent writes of the person.
        cwd: the name of the directory in which Hermes runs.
    """

    session: str
    told: Mapping[str, str]
    text: str
    fact: str
    cwd: str = "work"

    @property
    def agent(self) -> str:
        """The profile."""
        return self.told["agent_identity"]

    @property
    def user(self) -> str:
        """The person, as the bus names them."""
        return self.told.get("user_id", "default")


def _chat(agent: str, user: str, kind: str, chat: str) -> Mapping[str, str]:
    """Return what a gateway's agent is told."""
    ends = f":{user}" if kind == "group" else ""
    return {
        "platform": "telegram",
        "agent_identity": agent,
        "agent_workspace": "hermes",
        "user_id": user,
        "user_name": f"Person {user}",
        "chat_id": chat,
        "chat_name": f"Chat {chat}",
        "chat_type": kind,
        "gateway_session_key": f"agent:main:telegram:{kind}:{chat}{ends}",
    }


def _terminal(agent: str) -> Mapping[str, str]:
    return {"platform": "cli", "agent_identity": agent, "agent_workspace": "hermes"}


TALKS: Sequence[Talk] = (
    Talk("s-anna", _chat("default", "11", "dm", "11"), "My migraine began in May.", "Has migraine"),
    Talk(
        "s-bob", _chat("default", "22", "dm", "22"), "I owe the bank a fortune.", "Owes a fortune"
    ),
    Talk(
        "s-group",
        _chat("default", "11", "group", "-7"),
        "Our picnic is on Friday.",
        "Likes picnics",
    ),
    Talk("s-garden", _terminal("default"), "The roses want cutting.", "Grows roses", "garden"),
    Talk(
        "s-coder", _chat("coder", "11", "dm", "11"), "The parser fails on tabs.", "Writes parsers"
    ),
    Talk("s-shop", _terminal("coder"), "The shop opens at nine o'clock.", "Runs a shop", "shop"),
)


def have_inside(python: Path, root: Path, plugin: str, talks: Sequence[Talk]) -> None:
    """Have the conversations in Hermes itself, each profile in a process and a home of its own."""
    for agent in dict.fromkeys(talk.agent for talk in talks):
        home = root if agent == "default" else root / "profiles" / agent
        given = {"plugin": plugin, "talks": [_given(root, t) for t in talks if t.agent == agent]}
        _run(python, root, home, given)


def _given(root: Path, talk: Talk) -> dict[str, Any]:
    return {**msgspec.to_builtins(talk), "cwd": str(directory(root, talk))}


def directory(root: Path, talk: Talk) -> Path:
    """Return where Hermes runs for a conversation."""
    place = root.parent / talk.cwd
    place.mkdir(exist_ok=True)
    return place


def _run(python: Path, root: Path, home: Path, given: Mapping[str, Any]) -> None:
    env = {"HERMES_HOME": str(home), "HOME": str(root.parent), "HERMES_DISABLE_LAZY_INSTALLS": "1"}
    path = {"PATH": f"{root.parent / 'bin'}:/usr/bin:/bin"}
    done = subprocess.run(
        [python, "-I", _PROGRAM],
        input=json.dumps(given),
        env={**env, **path},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def begin(new_manager: Callable[[], MemoryManager], talk: Talk) -> Any:
    """Have a conversation's turn through the bus, as Hermes has it; return its manager."""
    manager = new_manager()
    manager.initialize_all(talk.session, agent_context="primary", **talk.told)
    manager.on_turn_start(1, talk.text)
    said = [{"role": "user", "content": talk.text}, {"role": "assistant", "content": "Noted."}]
    manager.sync_all(talk.text, "Noted.", session_id=talk.session, messages=said)
    return manager


def finish(manager: Any, talk: Talk) -> None:
    """Write the memory and end the conversation."""
    manager.on_memory_write("add", "user", talk.fact, metadata={"session_id": talk.session})
    manager.on_session_end([])
    manager.shutdown_all()
