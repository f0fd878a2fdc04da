"""A program for Hermes's own Python: a plugin inside Hermes's MemoryManager, as Hermes runs it.

Standard input holds a plugin's name and the steps of a conversation
(`helpers.hosted.hosted_steps`).
"""

import json
import sys


def main() -> None:
    """Run the steps through the real manager, then wait for its worker."""
    from agent.memory_manager import MemoryManager
    from plugins.memory import load_memory_provider

    given = json.load(sys.stdin)
    manager = MemoryManager()
    manager.add_provider(load_memory_provider(given["plugin"]))
    manager.initialize_all("s1", platform="cli", agent_context="primary", agent_identity="default")
    said = []
    for kind, *values in given["steps"]:
        if kind == "turn":
            said += [
                {"role": role, "content": text}
                for role, text in zip(("user", "assistant"), values, strict=True)
            ]
            manager.sync_all(*values, session_id="s1", messages=list(said))
            assert manager.flush_pending(timeout=60)
        elif kind == "write":
            manager.on_memory_write(*values, metadata={"session_id": "s1"})
        elif kind == "tool":
            manager.handle_tool_call(*values)
        elif kind == "end":
            manager.on_session_end(list(said))
    json.dump({"recall": manager.prefetch_all(given["query"], session_id="s1")}, sys.stdout)
    manager.shutdown_all()


if __name__ == "__main__":
    main()
