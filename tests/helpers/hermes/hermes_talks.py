"""A program for Hermes's own Python: conversations of one profile, as Hermes itself has them.

Standard input holds a plugin's name and the conversations (`helpers.hermes.talks`). Each is an
agent of its own with a real MemoryManager, in the order in which `run_agent` calls it.
"""

import json
import os
import sys
import threading
from typing import Any

_ENDS = ("session-init", "memwrite", "memory-write", "-sync")
"""How the plugins' threads are called that end with what they do."""


def main() -> None:
    """Have the conversations, one after another."""
    from hermes_cli.env_loader import load_hermes_dotenv

    given = json.load(sys.stdin)
    load_hermes_dotenv(hermes_home=os.environ["HERMES_HOME"])
    for talk in given["talks"]:
        _have(given["plugin"], talk)


def _have(plugin: str, talk: dict[str, str]) -> None:
    from agent.memory_manager import MemoryManager
    from plugins.memory import load_memory_provider

    os.chdir(talk["cwd"])
    session, text, fact = talk["session"], talk["text"], talk["fact"]
    manager = MemoryManager()
    manager.add_provider(load_memory_provider(plugin))
    manager.initialize_all(session, agent_context="primary", **talk["told"])
    manager.on_turn_start(1, text)
    manager.prefetch_all(text, session_id="")
    _wait(manager)  # a turn before the beginning is dropped: this one is not in such a hurry
    said = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    manager.sync_all(text, "Noted.", session_id=session, messages=said)
    assert manager.flush_pending(timeout=60)
    manager.on_memory_write("add", "user", fact, metadata={"session_id": session})
    _wait(manager)
    manager.on_session_end(said)
    manager.shutdown_all()


def _wait(manager: Any) -> None:
    """Wait until the plugin is idle."""
    for thread in threading.enumerate():
        if thread.name.endswith(_ENDS):
            thread.join(60)
    for provider in manager.providers:
        if hasattr(provider, "_retain_queue"):
            provider._retain_queue.join()


if __name__ == "__main__":
    main()
