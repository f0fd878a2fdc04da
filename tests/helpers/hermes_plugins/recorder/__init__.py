"""A Hermes plugin that records its calls in ``$HERMES_HOME/calls.jsonl`` and misbehaves by word.

A turn that begins with ``!thread`` is recorded by a thread, later; ``!fails`` raises in one,
``!complains`` logs a warning there; ``!hang=PATH``, ``!exit=PATH``, ``!down=PATH`` do so while that
file exists; ``!type`` raises TypeError.
"""

import json
import logging
import os
import threading
from pathlib import Path

from agent.memory_provider import MemoryProvider

logger = logging.getLogger(__name__)


class Recorder(MemoryProvider):
    """See the module."""

    name = "recorder"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        """Record what Hermes tells of the session."""
        self.session = session_id
        self._record("initialize", **kwargs)

    def sync_turn(self, user_content, assistant_content, *, session_id="", messages=None):
        misdeed, _, path = user_content.partition(" ")[0].partition("=")
        doing = getattr(self, f"_{misdeed[1:]}", None) if misdeed.startswith("!") else None
        if doing is None:
            self._turn(user_content, session_id, messages)
        else:
            doing(path, user_content, session_id, messages)

    def on_memory_write(self, action, target, content, metadata=None):
        self._record("memory", action=action, target=target, content=content, metadata=metadata)

    def on_turn_start(self, turn_number, message, **kwargs):
        self._record("turn_start", number=turn_number, message=message, details=kwargs)

    def on_session_end(self, messages):
        """Record how long the conversation was."""
        self._record("end", messages=[one["content"] for one in messages])

    def on_session_switch(self, new_session_id, **kwargs):
        """Go on under another id, unless the file ``no-switch`` is in HERMES_HOME."""
        if (_calls().parent / "no-switch").exists():
            raise ConnectionRefusedError("the backend is down")
        before, self.session = self.session, new_session_id
        self._record("switch", before=before, **kwargs)

    def on_pre_compress(self, messages):
        return f"{len(messages)} messages of {self.session}"

    def on_delegation(self, task, result, *, child_session_id="", **kwargs):
        self._record("delegation", task=task, result=result, child=child_session_id, details=kwargs)

    def prefetch(self, query, *, session_id=""):
        """Return the recorded turns that share a word with the query."""
        lines = _calls().read_text().splitlines() if _calls().exists() else []
        turns = [one["text"] for one in map(json.loads, lines) if one["hook"] == "turn"]
        return "\n\n".join(t for t in turns if any(word in t for word in query.split()))

    def get_tool_schemas(self):
        parameters = {"type": "object", "properties": {}}
        return [{"name": "recorder_note", "description": "Note it.", "parameters": parameters}]

    def handle_tool_call(self, tool_name, args, **kwargs):
        self._record("tool", tool=tool_name, args=args)
        return json.dumps({"noted": args})

    def shutdown(self):
        self._record("shutdown")

    def _turn(self, text, session_id, messages):
        said = [one["content"] for one in messages or []]
        self._record("turn", text=text, session_id=session_id, messages=said)

    def _thread(self, path, text, session_id, messages):
        def late():
            threading.Event().wait(0.3)
            self._turn(text, session_id, messages)

        threading.Thread(target=late, daemon=True).start()

    def _fails(self, path, text, session_id, messages):
        def fail():
            raise ValueError("a thread's failure")

        threading.Thread(target=fail, daemon=True).start()

    def _complains(self, path, text, session_id, messages):
        def complain():
            logger.warning("sync failed: %s", ConnectionRefusedError("the backend is down"))

        threading.Thread(target=complain, daemon=True).start()

    def _hang(self, path, text, session_id, messages):
        self._record("hanging")
        while Path(path).exists():
            threading.Event().wait(0.01)
        self._turn(text, session_id, messages)

    def _exit(self, path, text, session_id, messages):
        if Path(path).exists():
            Path(path).unlink()
            os._exit(7)
        self._turn(text, session_id, messages)

    def _down(self, path, text, session_id, messages):
        if Path(path).exists():
            raise ConnectionRefusedError("the backend is down")
        self._turn(text, session_id, messages)

    def _type(self, path, text, session_id, messages):
        raise TypeError("not this one")

    def _secret(self, path, text, session_id, messages):
        print(f"the key is {os.environ['RECORDER_KEY']}", flush=True)
        raise ValueError(f"the key {os.environ['RECORDER_KEY']} is refused")

    def _record(self, hook, **values):
        line = {"hook": hook, "session": self.session, "pid": os.getpid(), **values}
        with _calls().open("a") as file:
            file.write(json.dumps(line, default=str) + "\n")


def _calls():
    return Path(os.environ["HERMES_HOME"]) / "calls.jsonl"


def register(ctx):
    ctx.register_memory_provider(Recorder())
