"""A Hermes plugin that gives turns to a writer that never ends, started inside `sync_turn`.

So does Honcho's of Hermes 0.20.4; this writer sends each from a thread of its own. What it could
not send it keeps, and sends it with the next turn and at its shutdown. "Sent" is a line in
``$HERMES_HOME/sent``; it cannot send while the file ``down`` is there. The turn ``!polls`` starts a
thread that never ends and waits at no queue. With the file ``late`` it begins its session in a
thread, and drops turns before that, as Honcho's does; with ``synchronous`` it declares itself so.
"""

import logging
import os
import queue
import threading
from pathlib import Path

from agent.memory_provider import MemoryProvider

logger = logging.getLogger(__name__)


class Writer(MemoryProvider):
    """See the module."""

    name = "writer"

    def initialize(self, session_id, **kwargs):
        self.unsent = []
        self.queue = queue.Queue()
        self.thread = None
        self.synchronous = (_home() / "synchronous").exists()
        self.begun = not (_home() / "late").exists()
        if not self.begun:
            threading.Thread(target=self._begin, daemon=True).start()

    def sync_turn(self, user_content, assistant_content, *, session_id="", messages=None):
        if not self.begun:
            return
        if user_content == "!polls":
            threading.Thread(target=self._poll, name="poller", daemon=True).start()
        threading.Thread(target=self._hand_over, args=(user_content,), daemon=True).start()

    def shutdown(self):
        self._send()

    def _begin(self):
        threading.Event().wait(0.3)
        if (_home() / "down").exists():
            logger.warning("session init failed: %s", ConnectionRefusedError("the backend is down"))
        else:
            self.begun = True

    def _poll(self):
        while True:
            threading.Event().wait(0.1)

    def _hand_over(self, text):
        if self.thread is None:
            self.thread = threading.Thread(target=self._write, daemon=True)
            self.thread.start()
        self.queue.put(text)

    def _write(self):
        while True:
            try:
                text = self.queue.get(timeout=0.5)
            except queue.Empty:
                continue
            self.unsent.append(text)
            threading.Thread(target=self._late, daemon=True).start()

    def _late(self):
        threading.Event().wait(0.2)
        self._send()

    def _send(self):
        home = _home()
        if (home / "down").exists():
            logger.error("could not send: %s", ConnectionRefusedError("the backend is down"))
            return
        with (home / "sent").open("a") as file:
            file.writelines(f"{text}\n" for text in self.unsent)
        self.unsent.clear()


def _home():
    return Path(os.environ["HERMES_HOME"])


def register(ctx):
    ctx.register_memory_provider(Writer())
