"""The OpenAI Agents SDK itself on the bus, with a scripted model: nothing leaves the machine."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.processes.waiting import wait_until
from helpers.stories.published import published
from helpers.stories.scenario import environ, patient, wait_applied, worker
from memorybus import MemoryBus
from memorybus.config.settings import Settings
from memorybus.errors import LogUnavailable
from memorybus.events import Delegated, SessionSwitched, TurnCompleted

agents = pytest.importorskip("agents", reason="the extra openai-agents is not installed")
from agents.memory import OpenAIResponsesCompactionSession  # noqa: E402
from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402
from memorybus_frameworks.openai_agents import MemoryHooks, MemorySession  # noqa: E402

pytestmark = pytest.mark.timeout(180)

LADDER = "My brass ladder leans on the plum tree."


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    options = {"providers": ("holographic",), "partitions": 2, "prefetch_wait": 20.0}
    return patient(make_settings(url=redis_url, **options))


def elsewhere(settings: Settings, make_settings: MakeSettings) -> Settings:
    """Return the settings of another host of the same bus."""
    directory = make_settings().data_dir
    return msgspec.structs.replace(settings, data_dir=directory)


def say(text: str, item_id: str = "") -> list[Any]:
    """Return what a scripted model answers."""
    return [assistant_message(text, item_id=item_id or f"m-{text[:12]}")]


def call(name: str, call_id: str, **arguments: Any) -> list[Any]:
    """Return a scripted call of a tool."""
    return [function_call(name, arguments, call_id=call_id)]


@agents.function_tool
def measure(what: str) -> str:
    """Measure something."""
    return f"{what}: three metres"


def gardener(*steps: Any, tools: tuple[Any, ...] = (measure,), **options: Any) -> Any:
    """Return an agent whose model says these steps."""
    return agents.Agent(
        name="gardener", model=ScriptedModel(steps), tools=[*tools], handoffs=[], **options
    )


def talk(memory: MemorySession, agent: Any, prompt: Any, *, session: Any = None) -> Any:
    """Run an agent once."""
    config = agents.RunConfig(tracing_disabled=True, call_model_input_filter=memory.recall)
    options = {"session": session or memory, "hooks": MemoryHooks(memory), "run_config": config}
    return asyncio.run(agents.Runner.run(agent, prompt, **options))


def memory_of(bus: MemoryBus, user: str, session: str = "chat", **options: Any) -> MemorySession:
    """Return a person's conversation."""
    return MemorySession(bus, bus.session(session, user=user, warm=False), **options)


def shape(items: Any) -> list[str]:
    return [item.get("role") or item["type"] for item in items]


def seen(agent: Any) -> str:
    """Return what the model was given last, as text."""
    return str(agent.model.last_call.input)


def test_two_people_talk_across_a_restart(settings, spawn, make_settings, redis_client):
    """A conversation goes on in another process and host, with this person's memories alone."""
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        talk(memory_of(bus, "ann"), gardener(say("Noted.")), LADDER)
        talk(memory_of(bus, "bob"), gardener(say("Fine.")), "My boat is green.")
        assert bus.flush("logged", 20)
    wait_applied(redis_client, settings, "holographic")
    with MemoryBus.connect(elsewhere(settings, make_settings)) as bus:
        assert shape(asyncio.run(memory_of(bus, "ann").get_items())) == ["user", "assistant"]
        ann, bob = gardener(say("By the tree.")), gardener(say("I do not know."))
        question = "Where does the brass ladder lean?"
        talk(memory_of(bus, "ann", "new"), ann, question)
        talk(memory_of(bus, "bob", "new"), bob, question)
        shown = ann.model.last_call.input
        assert "<memory-context>" in shown[0]["content"]
        assert "plum tree" in shown[0]["content"]
        assert shown[1]["content"] == question
        assert "plum tree" not in seen(bob)
        history = asyncio.run(memory_of(bus, "ann", "new").get_items())
        assert shape(history) == ["user", "assistant"], "the fence is not part of the history"


def test_a_turn_is_one_event_with_its_calls(settings):
    """A turn has its words, calls of tools and tokens; sub-agents are delegations, each once."""
    botanist = agents.Agent(name="botanist", model=ScriptedModel([say("A plum.")]))
    tool = botanist.as_tool("ask_botanist", "Ask about plants.")
    carpenter = agents.Agent(name="carpenter", model=ScriptedModel([say("I mend it.")]))
    agent = gardener(
        call("measure", "c-1", what="ladder"),
        call("ask_botanist", "c-2", input="Which tree is it?"),
        call("transfer_to_carpenter", "c-3"),
        tools=(measure, tool),
    )
    agent.handoffs = [carpenter]
    with MemoryBus.connect(settings) as bus:
        talk(memory_of(bus, "ann"), agent, "Mend my ladder.")
        history = asyncio.run(memory_of(bus, "ann").get_items())
    (turn,) = published(settings, TurnCompleted)
    assert (turn.user, turn.assistant) == ("Mend my ladder.", "I mend it.")
    names = [m["tool_calls"][0]["function"]["name"] for m in turn.messages if "tool_calls" in m]
    assert names == ["measure", "ask_botanist", "transfer_to_carpenter"]
    assert shape(history) == [
        "user", *["function_call", "function_call_output"] * 3, "assistant"
    ]  # fmt: skip
    tasks = [(d.task, d.result) for d in published(settings, Delegated)]
    assert tasks == [
        ('{"input":"Which tree is it?"}', "A plum."),
        ("gardener handed the conversation over to carpenter", ""),
    ]


def test_a_streamed_run_is_the_same(settings):
    """A run that is streamed publishes what one that is not publishes."""
    agent = gardener(call("measure", "c-1", what="ladder"), say("Three metres."))

    async def stream(memory: MemorySession) -> None:
        config = agents.RunConfig(tracing_disabled=True, call_model_input_filter=memory.recall)
        result = agents.Runner.run_streamed(
            agent, "How long is it?", session=memory, run_config=config
        )
        async for _ in result.stream_events():
            pass

    with MemoryBus.connect(settings) as bus:
        asyncio.run(stream(memory_of(bus, "ann")))
        items = asyncio.run(memory_of(bus, "ann").get_items())
    assert shape(items) == ["user", "function_call", "function_call_output", "assistant"]
    (turn,) = published(settings, TurnCompleted)
    assert (turn.user, turn.assistant) == ("How long is it?", "Three metres.")


DYING = """
import asyncio, os, sys
import agents
from agents.testing import ScriptedModel, assistant_message, function_call
from memorybus import MemoryBus
from memorybus_frameworks.openai_agents import MemorySession

@agents.function_tool
def measure(what: str) -> str:
    "Measure something."
    if sys.argv[1] == "tool":
        os._exit(9)
    return "three metres"

bus = MemoryBus.connect()
memory = MemorySession(bus, bus.session("chat", user="ann", warm=False), run_id="request-1")
steps = [
    [function_call("measure", {"what": "ladder"}, call_id="c-1")],
    [assistant_message("Three metres.", item_id="m-1")],
]
agent = agents.Agent(name="gardener", model=ScriptedModel(steps), tools=[measure])
config = agents.RunConfig(tracing_disabled=True)
asyncio.run(agents.Runner.run(agent, "How long is it?", session=memory, run_config=config))
os._exit(9)
"""


@pytest.mark.parametrize("dies", ["tool", "end"])
def test_a_run_is_repeated_after_a_crash(settings, spawn, dies):
    """A run that died, in the middle or at its end, is repeated: it teaches nothing twice (G2)."""
    assert spawn("-c", DYING, dies, env=environ(settings)).wait(90) == 9
    with MemoryBus.connect(settings) as bus:
        wait_until(
            lambda: dies == "tool" or published(settings, TurnCompleted),
            "the dead process's turn is in the log",
        )
        agent = gardener(call("measure", "c-1", what="ladder"), say("Three metres."))
        talk(memory_of(bus, "ann", run_id="request-1"), agent, "How long is it?")
        assert shape(agent.model.first_call.input) == ["user"], "the history is as it was"
        items = asyncio.run(memory_of(bus, "ann").get_items())
        talk(memory_of(bus, "ann", run_id="request-2"), gardener(say("Still.")), "And now?")
        bus.flush("logged", 20)
    assert shape(items) == ["user", "function_call", "function_call_output", "assistant"]
    assert [t.user for t in published(settings, TurnCompleted)] == ["How long is it?", "And now?"]


def test_an_approval_is_given_on_another_host(settings, make_settings):
    """A run that waits for a person goes on elsewhere; no item and no word is there twice."""
    tool = agents.function_tool(lambda what: f"{what} felled", name_override="fell",
                                needs_approval=True, strict_mode=False)  # fmt: skip
    steps = (call("fell", "c-1", what="plum"), say("It is down."))
    first = gardener(*steps[:1], tools=(tool,))
    with MemoryBus.connect(settings) as bus:
        state = talk(memory_of(bus, "ann"), first, "Fell the plum.").to_state().to_json()
        assert bus.flush("logged", 20)
    second = gardener(*steps[1:], tools=(tool,))

    async def restore() -> Any:
        restored = await agents.RunState.from_json(second, state)
        restored.approve(restored.get_interruptions()[0])
        return restored

    with MemoryBus.connect(elsewhere(settings, make_settings)) as bus:
        memory = memory_of(bus, "ann")
        talk(memory, second, asyncio.run(restore()))
        items = asyncio.run(memory.get_items())
    assert shape(items) == ["user", "function_call", "function_call_output", "assistant"]
    words = [(t.user, t.assistant) for t in published(settings, TurnCompleted)]
    assert words == [("Fell the plum.", ""), ("", "It is down.")]


def test_a_removed_item_takes_its_turn_back(settings, spawn, redis_client):
    """What is popped to be asked again is forgotten by the providers, also after a restart."""
    worker(spawn, settings, jobs=1)
    with MemoryBus.connect(settings) as bus:
        memory = memory_of(bus, "ann")
        talk(memory, gardener(say("Noted.")), "My PIN is 4711.")
        memory = memory_of(bus, "ann")
        assert asyncio.run(memory.pop_item())["role"] == "assistant"
        assert asyncio.run(memory.pop_item())["content"] == "My PIN is 4711."
        assert asyncio.run(memory.pop_item()) is None
        talk(memory, gardener(say("Noted.")), LADDER)
        assert bus.flush("logged", 20)
    wait_applied(redis_client, settings, "holographic")
    with MemoryBus.connect(settings) as bus:
        items = asyncio.run(memory_of(bus, "ann").get_items())
        assert [item["content"] for item in items if item["role"] == "user"] == [LADDER]
        assert "4711" not in bus.recall("What is my PIN?", user="ann", timeout=30).text
    (switch,) = published(settings, SessionSwitched)
    assert len(switch.retracted) == 1


def test_compaction_empties_only_the_window(settings):
    """The SDK's compaction replaces the window, also for the next process, and teaches nothing."""
    compacted = [
        {"type": "message", "role": "user", "content": LADDER},
        {"type": "compaction", "id": "cmp-1", "encrypted_content": "opaque"},
    ]

    async def compact(**_: Any) -> Any:
        return SimpleNamespace(output=compacted, usage=None)

    client = SimpleNamespace(responses=SimpleNamespace(compact=compact))
    with MemoryBus.connect(settings) as bus:
        memory = memory_of(bus, "ann")
        talk(memory, gardener(say("Noted.")), LADDER)
        session = OpenAIResponsesCompactionSession("chat", memory, client=client)
        asyncio.run(session.run_compaction({"force": True, "compaction_mode": "input"}))
        assert asyncio.run(memory_of(bus, "ann").get_items()) == compacted
        talk(memory_of(bus, "ann"), gardener(say("Here.")), "Where are you?")
        items = asyncio.run(memory_of(bus, "ann").get_items())
        assert shape(items) == ["user", "compaction", "user", "assistant"]
        asyncio.run(memory.clear_session())
        assert asyncio.run(memory_of(bus, "ann").get_items()) == []
    words = [turn.user for turn in published(settings, TurnCompleted) if turn.user]
    assert words == [LADDER, "Where are you?"]


def test_without_redis_a_conversation_goes_on(make_redis, make_settings):
    """Who has read the history goes on without Redis (G9); who has not is told, not shown none."""
    server = make_redis()
    settings = make_settings(url=server.url, providers=("holographic",), partitions=2)
    with MemoryBus.connect(settings) as bus:
        memory = memory_of(bus, "ann")
        talk(memory, gardener(say("Noted.")), LADDER)
        server.stop()
        talk(memory, gardener(say("Here.")), "Where are you?")
        assert len(asyncio.run(memory.get_items())) == 4
        with pytest.raises(LogUnavailable, match="history cannot be read"):
            asyncio.run(memory_of(bus, "ann").get_items())


def test_a_turn_that_is_too_large_comes_in_parts(settings):
    """Outputs of tools may exceed one event: each word is published once, each item in order."""
    small = msgspec.structs.replace(settings, event_max_bytes=4_000)
    tool = agents.function_tool(lambda n: "x" * 2_500, name_override="dig", strict_mode=False)
    steps = [call("dig", f"c-{n}", n=n) for n in range(3)]
    with MemoryBus.connect(small) as bus:
        talk(memory_of(bus, "ann"), gardener(*steps, say("Done."), tools=(tool,)), "Dig.")
        items = asyncio.run(memory_of(bus, "ann").get_items())
    assert shape(items) == ["user", *["function_call", "function_call_output"] * 3, "assistant"]
    turns = published(settings, TurnCompleted)
    assert len(turns) > 1
    assert [turn.user for turn in turns if turn.user] == ["Dig."]
    assert [turn.assistant for turn in turns if turn.assistant] == ["Done."]
