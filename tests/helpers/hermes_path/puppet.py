"""Runs inside the Python of Hermes: the real agent, told by lines of JSON what to do.

It uses Hermes's own command line object (`HermesCLI`) for turns and slash commands, and builds
agents as the gateway does. Each hook of the memory provider is timed and noted, as it comes, in
the file `HERMES_TEST_HOOKS`, so that a kill loses nothing of it.
"""

import functools
import json
import os
import sys
import threading
import time
from typing import Any

HOOKS = (
    "initialize",
    "system_prompt_block",
    "prefetch",
    "queue_prefetch",
    "sync_turn",
    "on_turn_start",
    "on_session_end",
    "on_session_switch",
    "on_pre_compress",
    "on_delegation",
    "on_memory_write",
    "handle_tool_call",
    "get_tool_schemas",
    "is_available",
    "shutdown",
)


class Witness:
    """Knows for how long this process stood still, which is no hook's doing.

    A thread that only looks at the clock: a hook that waits for something leaves it alone; a
    machine that has no time for the process holds it up as well.
    """

    TICK = 0.01
    STILL = 0.05
    """Seconds that the thread must be late: less is what threads cost each other."""

    def __init__(self) -> None:
        self._seen = (0.0, 0.0)
        self.begin()
        os.register_at_fork(after_in_child=self.begin)

    def begin(self) -> None:
        self._seen = (time.perf_counter(), 0.0)
        threading.Thread(target=self._look, name="witness", daemon=True).start()

    def _look(self) -> None:
        nothing = threading.Event()
        while True:
            nothing.wait(self.TICK)
            self._seen = (time.perf_counter(), self.stood())

    def stood(self) -> float:
        """Return the seconds in which the process stood still so far."""
        last, stood = self._seen
        late = time.perf_counter() - last - self.TICK
        return stood + late if late > self.STILL else stood


def note(hook: str, seconds: float, stood: float, arguments: Any) -> None:
    """Append one call to the journal."""
    line = {
        "hook": hook,
        "at": time.time(),
        "ms": seconds * 1e3,
        "stood": stood * 1e3,
        "thread": threading.current_thread().name,
    }
    with open(os.environ["HERMES_TEST_HOOKS"], "a") as file:
        file.write(json.dumps(line | {"args": repr(arguments)[:2000]}) + "\n")


def timed(hook: str, call: Any, witness: Witness) -> Any:
    """Wrap a hook; its signature stays visible to Hermes's probes."""

    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        begun, stood = time.perf_counter(), witness.stood()
        try:
            return call(*args, **kwargs)
        finally:
            stood = witness.stood() - stood
            note(hook, time.perf_counter() - begun, stood, (args, kwargs))

    return wrapper


def time_hooks() -> None:
    """Time the hooks of every provider that Hermes loads from now on."""
    import plugins.memory as memory

    load, witness = memory.load_memory_provider, Witness()

    def loading(*args: Any, **kwargs: Any) -> Any:
        provider = load(*args, **kwargs)
        for hook in HOOKS:
            if provider is not None and hasattr(provider, hook):
                setattr(provider, hook, timed(hook, getattr(provider, hook), witness))
        return provider

    memory.load_memory_provider = loading


class Puppet:
    """One process of Hermes: a command line, and the agents of a gateway."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._agents: dict[str, Any] = {}
        self._histories: dict[str, list[Any]] = {}
        self._parked: dict[str, Any] = {}
        self._cli: Any = None
        self._free = threading.Event()

    @property
    def cli(self) -> Any:
        """The command line object, made when first needed as ``hermes chat`` makes it."""
        if self._cli is None:
            import cli

            self._cli = cli.HermesCLI(
                toolsets=self._options.get("toolsets"), resume=self._options.get("resume")
            )
        return self._cli

    def chat(self, text: str) -> dict[str, Any]:
        """One turn, as typed at the prompt."""
        begun = time.perf_counter()
        answer = self.cli.chat(text)
        return {"answer": answer, "session": self.cli.session_id, "s": time.perf_counter() - begun}

    def ready(self) -> dict[str, Any]:
        """Build the agent that the first turn would build."""
        assert self.cli._ensure_runtime_credentials()
        assert self.cli._init_agent()
        return {"session": self.cli.session_id}

    def slash(self, text: str) -> dict[str, Any]:
        """One slash command, as typed at the prompt."""
        begun = time.perf_counter()
        self.cli.process_command(text)
        return {"session": self.cli.session_id, "s": time.perf_counter() - begun}

    def retry(self) -> dict[str, Any]:
        """Refuse the last answer, as ``/retry`` does: its words are said again."""
        before = self._inactive()
        text = self.cli.retry_last()
        marked = self._inactive() > before
        return {**self.chat(text), "marked": marked}

    def _inactive(self) -> int:
        rows = self.cli._session_db.get_messages(self.cli.session_id, include_inactive=True)
        return sum(not row.get("active", 1) for row in rows)

    def compress_beside(self, session: str) -> dict[str, Any]:
        """As a gateway's ``/compress`` that demands a checkpoint.

        Another agent of the session has memory for a moment, and is named neither person nor chat.
        """
        from hermes_state import SessionDB
        from run_agent import AIAgent

        agent = AIAgent(
            model="scripted",
            api_key="dummy",
            base_url=self._options["url"],
            provider="custom",
            max_iterations=4,
            quiet_mode=True,
            skip_memory=False,
            enabled_toolsets=["memory"],
            session_id=session,
            session_db=SessionDB(),
        )
        agent._end_session_on_close = False
        history, before = self._histories[session], len(self._histories[session])
        history, _ = agent._compress_context(list(history), "", force=True, task_id=session)
        self._histories[session] = history
        agent.shutdown_memory_provider(history)
        return {"shorter": len(history) < before, "compressed": agent.session_id}

    def late(self, session: str, user: str, text: str) -> dict[str, Any]:
        """One message whose agent is shut down just before Hermes hands the turn to memory."""
        self.message(session, user, "the words before")
        agent = self._agents[session]
        hand_over, before = agent._sync_external_memory_for_turn, self._histories[session]

        def too_late(**turn: Any) -> None:
            agent.shutdown_memory_provider(before)
            hand_over(**turn)

        agent._sync_external_memory_for_turn = too_late
        answer = self.message(session, user, text)
        del self._agents[session]
        return answer

    def job(self, text: str) -> dict[str, Any]:
        """One run of a cron job, by Hermes's own scheduler."""
        from cron.scheduler import run_job

        job = {
            "id": "nightly",
            "name": "nightly",
            "prompt": text,
            "schedule": {},
            "deliver": "local",
        }
        return {"done": repr(run_job(job))[:2000]}

    def identity(self) -> dict[str, Any]:
        """Return what the gateway asks for each message, to know whether its agents still fit."""
        from gateway.run_agent_cache import GatewayAgentCacheMixin as Cache

        begun = time.perf_counter()
        signature = Cache._memory_provider_identity_signature("memorybus")
        return {"signature": signature, "ms": (time.perf_counter() - begun) * 1e3}

    def recalled(self) -> dict[str, Any]:
        """Return what Hermes shows of the last recall."""
        return {"shown": self.cli.agent._memory_manager.describe_recall()}

    def interrupted(self, text: str, seconds: float) -> dict[str, Any]:
        """One turn that the person stops after so many seconds, as Ctrl-C does."""
        self.ready()
        threading.Timer(seconds, self.cli.agent.interrupt).start()
        return self.chat(text)

    def swap_manager(self) -> dict[str, Any]:
        """Put the bus's own manager in the place of Hermes's, for all agents made from now on."""
        import agent.memory_manager as seam
        from memorybus import MemoryBus
        from memorybus_hermes.plugin import memory_managers

        bus = MemoryBus.connect()
        seam.MemoryManager = memory_managers(bus)
        return {}

    def busy(self) -> dict[str, Any]:
        """Keep the memory manager's one background thread busy until `free`, as a slow backend."""
        self._free.clear()
        self.cli.agent._memory_manager._submit_background(lambda: self._free.wait(60))
        return {}

    def free(self) -> dict[str, Any]:
        """Let the background thread go on."""
        self._free.set()
        return {}

    def settle(self) -> dict[str, Any]:
        """Wait until the memory manager's background thread has done what it was given."""
        agents = [*self._agents.values(), *([self.cli.agent] if self._cli else [])]
        managers = [agent._memory_manager for agent in agents if agent._memory_manager]
        managers += self._parked.values()
        return {"done": all(manager.flush_pending(timeout=30) for manager in managers)}

    def forget_agent(self) -> dict[str, Any]:
        """As after a change of credentials: the next turn builds another agent."""
        self.cli.agent = None
        return {}

    def message(
        self, session: str, user: str, text: Any, platform: str = "telegram"
    ) -> dict[str, Any]:
        """One message of a gateway's user, with the agent kept between messages."""
        begun = time.perf_counter()
        agent = self._agents.get(session) or self._gateway_agent(session, user, platform)
        self._agents[session] = agent
        result = agent.run_conversation(
            text, conversation_history=list(self._histories.get(session, ())), task_id=session
        )
        self._histories[session] = result["messages"]
        answer = result["final_response"]
        return {"answer": answer, "session": agent.session_id, "s": time.perf_counter() - begun}

    def request(self, session: str, text: str) -> dict[str, Any]:
        """One request to the API server: an agent of its own, which nobody shuts down.

        Since 0.22 it gets the memory manager of the session's request before.
        """
        import inspect

        from run_agent import AIAgent

        takes = "memory_manager" in inspect.signature(AIAgent).parameters
        given = {"memory_manager": self._parked.pop(session, None)} if takes else {}
        agent = self._gateway_agent(session, "", "api_server", **given)
        history = agent._session_db.get_messages_as_conversation(session)
        result = agent.run_conversation(text, conversation_history=history, task_id=session)
        self._parked[agent.session_id] = agent._memory_manager
        return {"answer": result["final_response"], "session": agent.session_id}

    def take_back(self, session: str, turns: int = 1) -> dict[str, Any]:
        """As a gateway's ``/undo``: the rows are marked, the agent is dropped, no hook tells."""
        agent = self._agents.pop(session)
        database = agent._session_db
        if hasattr(database, "rewind_user_turn"):
            database.rewind_user_turn(session, -turns)
        else:
            rows = [row for row in database.get_messages(session) if row["role"] == "user"]
            database.rewind_to_message(session, rows[-turns]["id"])
        self._histories[session] = database.get_messages_as_conversation(session)
        return {}

    def storm(self, rounds: int, pause: float) -> dict[str, Any]:
        """Drive the hooks of an agent as turns do, without a model: for their times alone."""
        agent = self._agents.get("storm") or self._gateway_agent("storm", "storm", "telegram")
        self._agents["storm"] = agent
        manager = agent._memory_manager
        for number in range(rounds):
            text = f"words of round {number} about the harbour"
            told = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
            about = {"session_id": "storm", "tool_call_id": f"{os.getpid()}-{time.time_ns()}"}
            manager.on_turn_start(number, text)
            manager.prefetch_all(text)
            manager.on_memory_write("add", "memory", f"fact {number}", metadata=about)
            manager.on_delegation(text, "done", child_session_id=about["tool_call_id"])
            manager.sync_all(text, "ok", session_id="storm", messages=told)
            manager.queue_prefetch_all(text, session_id="storm")
            if number % 10 == 9:
                manager.on_session_end(told)
                manager.on_session_switch("storm", rewound=True)
            threading.Event().wait(pause)
        return self.settle()

    def expire(self, session: str) -> dict[str, Any]:
        """As the gateway's sweep: the end of a session, and its agent's shutdown."""
        self._agents.pop(session).shutdown_memory_provider(self._histories.get(session, []))
        return {}

    def _gateway_agent(self, session: str, user: str, platform: str, **given: Any) -> Any:
        from hermes_state import SessionDB
        from run_agent import AIAgent

        return AIAgent(
            model="scripted",
            api_key="dummy",
            base_url=self._options["url"],
            provider="custom",
            enabled_toolsets=self._options.get("toolsets"),
            quiet_mode=True,
            session_id=session,
            platform=platform,
            user_id=user,
            user_name=f"name of {user}",
            chat_id=f"chat-{user}",
            gateway_session_key=f"agent:main:{platform}:dm:{user}",
            session_db=SessionDB(),
            **given,
        )

    def fork(self) -> dict[str, Any]:
        """Go on in a child that has Hermes imported already, and here once it has ended."""
        import cli  # noqa: F401
        import model_tools  # noqa: F401
        import openai  # noqa: F401
        import run_agent  # noqa: F401

        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            return {"ended": os.waitstatus_to_exitcode(status)}
        return {"pid": os.getpid()}

    def drop(self) -> None:
        """End as ``hermes -z`` and a gateway do: memory is shut down; no exit function runs."""
        for agent in (*self._agents.values(), *([self.cli.agent] if self._cli else [])):
            agent.shutdown_memory_provider(agent._session_messages)
        os._exit(0)

    def leave(self) -> None:
        """Leave as the command line does at its end, by way of the interpreter's own."""
        import cli

        cli._run_cleanup()
        sys.exit(0)


def main() -> None:
    """Read commands from standard input until it ends; answer on the given descriptor."""
    options = json.loads(sys.argv[1])
    time_hooks()
    puppet = Puppet(options)
    with os.fdopen(options["answers"], "w") as answers:
        for line in sys.stdin:
            command = json.loads(line)
            try:
                answer = getattr(puppet, command.pop("do"))(**command)
            except Exception as error:
                import traceback

                answer = {"error": f"{error!r}\n{traceback.format_exc()}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
