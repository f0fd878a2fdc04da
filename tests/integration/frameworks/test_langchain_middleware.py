"""The middleware in LangChain's own agents, with a scripted model and LangGraph's checkpoints."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.processes.waiting import wait_until
from helpers.stories.published import published
from helpers.stories.scenario import environ, patient, wait_applied, worker
from memorybus import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import InvalidEvent, SpoolFull
from memorybus.events import TurnCompleted

pytest.importorskip("langchain", reason="the extra langgraph is not installed")
pytest.importorskip("langgraph.checkpoint.sqlite", reason="the extra dev is not installed")
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from memorybus_frameworks.langchain_middleware import MemoryMiddleware

pytestmark = pytest.mark.timeout(180)

LADDER = "My brass ladder leans on the plum tree."
QUESTION = "Where does the brass ladder lean?"


class Scripted(FakeMessagesListChatModel):
    """A model that gives its answers in turn, and notes what it was shown."""

    shown: list[Any]

    def bind_tools(self, tools: Any, **_: Any) -> "Scripted":
        """Take tools without using them."""
        return self

    def _generate(self, messages: Any, *words: Any, **options: Any) -> Any:
        self.shown.append(list(messages))
        return super()._generate(messages, *words, **options)


def scripted(*answers: Any) -> Scripted:
    """Return a model that gives these answers."""
    made = [AIMessage(a, id=f"a-{a[:9]}") if isinstance(a, str) else a for a in answers]
    return Scripted(responses=made, shown=[])


def calling(name: str, **arguments: Any) -> AIMessage:
    """Return an answer that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c-{name}"}])


def measure(what: str) -> str:
    """Measure something."""
    return f"{what}: three metres"


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    options = {"providers": ("holographic",), "partitions": 2, "prefetch_wait": 20.0}
    return patient(make_settings(url=redis_url, **options))


@pytest.fixture(name="bus")
def _bus(settings: Settings) -> Iterator[MemoryBus]:
    with MemoryBus.connect(settings) as bus:
        yield bus


def talk(agent: Any, prompt: Any, user: str = "ann", thread: str = "chat") -> Any:
    """Run an agent once."""
    given = {"messages": [HumanMessage(prompt)]} if isinstance(prompt, str) else prompt
    config = {"configurable": {"thread_id": thread}}
    return agent.invoke(given, config, context={"user_id": user})


def turns(settings: Settings, bus: MemoryBus | None = None) -> list[TurnCompleted]:
    """Return the turns in the log, those that a bus has published among them."""
    assert bus is None or bus.flush("logged", 20)
    return published(settings, TurnCompleted)


def test_two_people_talk_across_a_restart(settings, make_settings, spawn, redis_client):
    """Another process recalls a person's memories before the prompt, and nobody else's."""
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        talk(create_agent(scripted("Noted."), middleware=[MemoryMiddleware(bus)]), LADDER)
        assert bus.flush("logged", 20)
    wait_applied(redis_client, settings, "holographic")
    other = msgspec.structs.replace(settings, data_dir=make_settings().data_dir)
    with MemoryBus.connect(other) as bus:
        model = scripted("By the tree.", "I do not know.")
        agent = create_agent(
            model, middleware=[MemoryMiddleware(bus)], checkpointer=InMemorySaver()
        )
        kept = talk(agent, QUESTION, thread="new")
        talk(agent, QUESTION, user="bob", thread="new-bob")
        assert turns(settings, bus)[1].user == QUESTION
    ann, bob = (shown[-1].text for shown in model.shown)
    assert "plum tree" in ann
    assert ann.startswith("<memory-context>")
    assert ann.endswith(QUESTION)
    assert bob == QUESTION
    assert [message.text for message in kept["messages"]] == [QUESTION, "By the tree."]


def test_a_turn_is_one_event_with_its_calls(bus, settings):
    """A turn has its words, tools, model and tokens; its calls of the model see the same bytes."""
    last = AIMessage(
        "Three metres.",
        usage_metadata={"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
        response_metadata={"model_name": "m-1"},
    )
    model = scripted(calling("measure", what="ladder"), last)
    agent = create_agent(model, [measure], middleware=[MemoryMiddleware(bus)])
    talk(agent, "How long is it?")
    (turn,) = turns(settings, bus)
    assert (turn.user, turn.assistant) == ("How long is it?", "Three metres.")
    assert (turn.model, turn.tokens_in, turn.tokens_out) == ("m-1", 9, 4)
    assert [message["role"] for message in turn.messages] == [
        "user", "assistant", "tool", "assistant"
    ]  # fmt: skip
    assert turn.messages[1]["tool_calls"][0]["function"]["name"] == "measure"
    assert model.shown[0][-1] == model.shown[1][0]


def test_asyncio_agents_are_served(bus, settings):
    """The asynchronous methods do what the others do, from a running loop."""
    agent = create_agent(scripted("Noted."), middleware=[MemoryMiddleware(bus)])
    config = {"configurable": {"thread_id": "chat"}}
    given = {"messages": [HumanMessage(LADDER)]}
    asyncio.run(agent.ainvoke(given, config, context={"user_id": "ann"}))
    assert [turn.user for turn in turns(settings, bus)] == [LADDER]


class Failing(AgentMiddleware):
    """Fails once, after the turn was published and before its checkpoint."""

    failed = False

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Fail the first time."""
        if not self.failed:
            self.failed = True
            raise ConnectionError("the host fails")


def test_a_run_that_goes_on_after_a_failure_teaches_once(bus, settings):
    """A checkpoint replays the step that published: the log has the turn once (G2)."""
    memory = [Failing(), MemoryMiddleware(bus)]
    saver = InMemorySaver()
    agent = create_agent(scripted("Noted."), middleware=memory, checkpointer=saver)
    with pytest.raises(ConnectionError):
        talk(agent, LADDER)
    talk(agent, {"messages": []})
    config = {"configurable": {"thread_id": "chat"}}
    agent.invoke(None, config, context={"user_id": "ann"})
    assert [turn.user for turn in turns(settings, bus)] == [LADDER]


DYING = """
import os, sys
from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from memorybus import MemoryBus
from memorybus_frameworks.langchain_middleware import MemoryMiddleware

def measure(what: str) -> str:
    "Measure something."
    if sys.argv[2] == "dies":
        os._exit(9)
    return "three metres"

class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, tools, **_):
        return self

call = {"name": "measure", "args": {"what": "ladder"}, "id": "c-1"}
steps = [AIMessage("", tool_calls=[call], id="a-1"), AIMessage("Three metres.", id="a-2")]
with SqliteSaver.from_conn_string(sys.argv[1]) as saver, MemoryBus.connect() as bus:
    agent = create_agent(
        Scripted(responses=steps if sys.argv[2] == "dies" else steps[1:]),
        [measure],
        middleware=[MemoryMiddleware(bus)],
        checkpointer=saver,
    )
    given = {"messages": [HumanMessage("How long is it?")]} if sys.argv[2] == "dies" else None
    config = {"configurable": {"thread_id": "chat"}}
    agent.invoke(given, config, context={"user_id": "ann"}, durability="sync")
    bus.flush("logged", 20)
"""


def test_a_killed_run_is_resumed_by_another_process(settings, spawn: Spawn, tmp_path: Path):
    """A process that died within a tool is resumed from its checkpoint: one turn, whole."""
    file = str(tmp_path / "checkpoints.db")
    assert spawn("-c", DYING, file, "dies", env=environ(settings)).wait(90) == 9
    assert spawn("-c", DYING, file, "resumes", env=environ(settings)).wait(90) == 0
    (turn,) = wait_until(lambda: turns(settings), "the turn is in the log")
    assert (turn.user, turn.assistant) == ("How long is it?", "Three metres.")


def test_an_approval_leaves_one_turn(bus, settings):
    """A run that waits for a person publishes its turn when it ends."""
    approve = HumanInTheLoopMiddleware(interrupt_on={"measure": True})
    agent = create_agent(
        scripted(calling("measure", what="ladder"), "Three metres."),
        [measure],
        middleware=[MemoryMiddleware(bus), approve],
        checkpointer=InMemorySaver(),
    )
    talk(agent, "How long is it?")
    bus.flush("logged", 20)
    assert turns(settings, bus) == []
    talk(agent, Command(resume={"decisions": [{"type": "approve"}]}))
    assert [(turn.user, turn.assistant) for turn in turns(settings, bus)] == [
        ("How long is it?", "Three metres.")
    ]


def test_a_summary_is_nobodys_words(bus, settings):
    """What a summarizing middleware puts in a person's mouth is neither asked nor taught."""
    summarize = SummarizationMiddleware(
        scripted("They spoke of ladders."), trigger=("messages", 3), keep=("messages", 1)
    )
    agent = create_agent(
        scripted("One.", "Two.", "Three."),
        middleware=[summarize, MemoryMiddleware(bus)],
        checkpointer=InMemorySaver(),
    )
    for prompt in ("First?", "Second?", "Third?"):
        talk(agent, prompt)
    assert [turn.user for turn in turns(settings, bus)] == ["First?", "Second?", "Third?"]


def test_a_run_without_a_person_is_refused(bus):
    """Nobody is assumed: memories of an unnamed person would be everybody's."""
    agent = create_agent(scripted("Noted."), middleware=[MemoryMiddleware(bus)])
    with pytest.raises(InvalidEvent, match="names no person"):
        agent.invoke({"messages": [HumanMessage("Hi")]}, {"configurable": {"thread_id": "t"}})
    with pytest.raises(InvalidEvent, match="names no conversation"):
        agent.invoke({"messages": [HumanMessage("Hi")]}, context={"user_id": "ann"})


def test_a_failure_of_memory_does_not_fail_the_agent(bus, monkeypatch, caplog):
    """A full spool costs the memory of a turn, not its answer, and is logged (G9)."""

    def refuse(*_: Any, **__: Any) -> None:
        raise SpoolFull("the spool is full")

    monkeypatch.setattr(bus.publisher, "publish", refuse)
    agent = create_agent(scripted("Noted."), middleware=[MemoryMiddleware(bus)])
    assert talk(agent, LADDER)["messages"][-1].text == "Noted."
    assert "a turn was not published: the spool is full" in caplog.text


def test_a_turn_that_is_too_large_keeps_its_words(settings):
    """Of a turn that exceeds one event the words are published."""
    small = msgspec.structs.replace(settings, event_max_bytes=4_000)
    with MemoryBus.connect(small) as bus:
        agent = create_agent(
            scripted(calling("measure", what="x" * 5_000), "Done."),
            [measure],
            middleware=[MemoryMiddleware(bus)],
        )
        talk(agent, "Dig.")
        assert [(turn.user, turn.assistant) for turn in turns(small, bus)] == [("Dig.", "Done.")]


def test_a_turn_with_a_file_that_cannot_be_converted_keeps_its_words(bus, settings):
    """Not every block that a model takes has a form in the log: its message costs no answer."""
    paper = {"type": "file", "url": "https://example.org/paper.pdf"}
    asked = HumanMessage([paper, {"type": "text", "text": "Who wrote it?"}])
    agent = create_agent(scripted("Ann."), middleware=[MemoryMiddleware(bus)])
    assert talk(agent, {"messages": [asked]})["messages"][-1].text == "Ann."
    (turn,) = turns(settings, bus)
    assert (turn.user, turn.assistant, turn.messages) == ("Who wrote it?", "Ann.", ())
