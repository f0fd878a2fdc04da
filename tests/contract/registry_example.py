"""Providers of the nine-member contract, as strangers would write them: they know no memorybus."""

import asyncio
import json
import threading
from pathlib import Path


class Notes:
    """Keeps every turn and write in one file per session key."""

    name = "notes"

    def __init__(self):
        self.events = []

    def is_available(self):
        return True

    def initialize(self, session_key, config):
        self.session_key = session_key
        self.config = config
        self.path = Path(config["dir"]) / f"{session_key}.md"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def shutdown(self):
        self.events.append("shutdown")

    def capabilities(self):
        return {"tool_names": {"notes_search"}, "suppresses_local_writes": {"memory": True}}

    def enrich_turn(self, user_message, messages):
        return self.path.read_text() if self.path.exists() else None

    def on_memory_write(self, action, target, content, old_text=None):
        self._keep(content or "", (action, target, content, old_text))

    def on_turn_complete(self, user_message, assistant_response):
        self._keep(f"{user_message}\n{assistant_response}", (user_message, assistant_response))

    def on_compress(self, messages, compression_count):
        texts = " ".join(message["content"] for message in messages)
        self._keep(texts, (messages, compression_count))

    def _keep(self, text, event):
        self.events.append(event)
        with self.path.open("a", errors="surrogatepass") as file:
            file.write(f"{text}\n\n")


class Bare:
    """The least that keeps the contract: nothing is remembered, and that is counted."""

    name = "bare"

    def __init__(self, name="bare"):
        self.name = name
        self.told = []
        self.asked = []
        self.ended = 0

    def is_available(self):
        return True

    def initialize(self, session_key, config):
        self.config = config

    def shutdown(self):
        self.ended += 1

    def capabilities(self):
        return {}

    def enrich_turn(self, user_message, messages):
        self.asked.append((user_message, messages))
        return f"{self.name} knows."

    def on_memory_write(self, action, target, content, old_text=None):
        self.told.append((action, target, content, old_text))

    def on_turn_complete(self, user_message, assistant_response):
        self.told.append((user_message, assistant_response))

    def on_compress(self, messages, compression_count):
        self.told.append((messages, compression_count))


class Asynchronous(Bare):
    """All of it in coroutines."""

    async def initialize(self, session_key, config):
        await asyncio.sleep(0)

    async def shutdown(self):
        await asyncio.sleep(0)
        self.ended += 1

    async def enrich_turn(self, user_message, messages):
        await asyncio.sleep(0)
        return f"{self.name} knows."

    async def on_turn_complete(self, user_message, assistant_response):
        await asyncio.sleep(0)
        self.told.append((user_message, assistant_response))


class Unavailable(Bare):
    """Not installed."""

    def is_available(self):
        return False


class FailsToStart(Bare):
    """Its backend refuses."""

    def initialize(self, session_key, config):
        raise ConnectionError("no backend")


class Failing(Bare):
    """Raises, in every hook, what it was made with."""

    def __init__(self, name="failing", error=None):
        super().__init__(name)
        self.error = error or ValueError("a bug")

    def enrich_turn(self, user_message, messages):
        raise self.error

    def on_memory_write(self, action, target, content, old_text=None):
        raise self.error

    def on_turn_complete(self, user_message, assistant_response):
        raise self.error


class Stuck(Bare):
    """Answers when it is let go, and not before."""

    def __init__(self, name="stuck"):
        super().__init__(name)
        self.go = threading.Event()

    def enrich_turn(self, user_message, messages):
        self.asked.append((user_message, messages))
        self.go.wait(60)
        return f"{self.name} knows."


class Meeting(Bare):
    """Answers only while another one is being asked as well."""

    def __init__(self, name, barrier):
        super().__init__(name)
        self.barrier = barrier

    def enrich_turn(self, user_message, messages):
        self.barrier.wait(20)
        return f"{self.name} knows."


class Listening(Bare):
    """Knows what was said before the prompt, if it is told."""

    def enrich_turn(self, user_message, messages):
        before = [message["content"] for message in messages[:-1]]
        return f"Before {messages[-1]['content']!r} came {before[-1]!r}" if before else None


class Tooled(Bare):
    """Brings two tools, as a plugin of Hermes does, and shows one of them."""

    def initialize(self, session_key, config):
        self.session_key = session_key

    def capabilities(self):
        return {"tool_names": {"tea_recall"}}

    def get_tool_schemas(self):
        parameters = {"type": "object", "properties": {}}
        return [
            {"name": name, "description": "Tea.", "parameters": parameters}
            for name in ("tea_recall", "tea_forget")
        ]

    def handle_tool_call(self, tool, arguments):
        if arguments.get("break"):
            raise ValueError("a bug")
        self.told.append((tool, arguments))
        return json.dumps({"tool": tool, "of": self.session_key})


class Suppressing(Bare):
    """Wants the agent not to write its own MEMORY.md."""

    name = "suppressing"

    def capabilities(self):
        return {"suppresses_local_writes": {"memory": True, "user": False}}


class Patient(Bare):
    """Saves what is compressed in its own time: while a file is there; its diary tells of it."""

    def on_compress(self, messages, compression_count):
        self._note(f"begins {compression_count} with {sorted(self.config)}")
        while Path(self.config["busy"]).exists():
            threading.Event().wait(0.02)
        self._note(f"saved {compression_count}")

    def on_turn_complete(self, user_message, assistant_response):
        self._note(user_message)

    def _note(self, text):
        with Path(self.config["diary"]).open("a") as file:
            file.write(f"{text}\n")


def two_of_one_name():
    """Make two providers that are told apart by nothing."""
    return [Bare(), Bare()]


def two():
    """Make two providers."""
    return [Bare("first"), Bare("second")]


class Incomplete:
    """Lacks most of the contract."""

    name = "incomplete"
