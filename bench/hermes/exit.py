"""How long leaving Hermes takes when a backend hangs, from the command to the end of the process.

After one turn: without memory; with memorybus and a Redis that is stopped, or dead; with
memorybus and a worker that hosts a Hermes plugin whose backend hangs; and that same plugin in
Hermes itself, as it is used without the bus. The shortest of several, but the last, which takes
as long as Hermes waits.
"""

import shutil
from pathlib import Path
from typing import Any

from helpers.hermes.hermes_agent import PYTHON, Hermes
from helpers.hermes.hermes_world import World

_PLUGIN = '''"""A memory provider whose backend never answers."""

import threading

from agent.memory_provider import MemoryProvider


class Hanging(MemoryProvider):
    name = "hanging"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        pass

    def get_tool_schemas(self):
        return []

    def sync_turn(self, user, assistant, *, session_id=""):
        threading.Event().wait()


def register(ctx):
    ctx.register_memory_provider(Hanging())
'''


def measure(size: Any) -> dict[str, float]:
    """Return the seconds."""
    return _redis_away(size.exits) | _backend_hangs(size.exits)


def _redis_away(exits: int) -> dict[str, float]:
    world = World()
    try:
        plain, bus = world.hermes(world.make_home("plain", "")), world.hermes()
        found = {
            "hermes_exit_plain_s": min(_leave(plain) for _ in range(exits)),
            "hermes_exit_up_s": min(_leave(bus) for _ in range(exits)),
        }
        world.server.freeze()
        found["hermes_exit_stopped_s"] = min(_leave(bus) for _ in range(exits))
        world.server.thaw()
        world.server.kill()
        found["hermes_exit_dead_s"] = min(_leave(bus) for _ in range(exits))
        return found
    finally:
        world.close()


def _backend_hangs(exits: int) -> dict[str, float]:
    plugin = _written(Path(__file__).resolve().parents[1] / "out" / "hanging")
    hosted = {"kind": f"hermes:{plugin}", "hermes_python": str(PYTHON)}
    world = World(providers=("hanging",), provider={"hanging": hosted})
    try:
        world.worker()
        own = world.make_home("own", "hanging")
        shutil.copytree(plugin, own.path / "plugins" / "hanging")
        bus, alone = world.hermes(), world.hermes(own)
        return {
            "hermes_exit_hosted_hangs_s": min(_leave(bus) for _ in range(exits)),
            "hermes_exit_own_plugin_hangs_s": _leave(alone),
        }
    finally:
        world.close()
        shutil.rmtree(plugin, ignore_errors=True)


def _written(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(_PLUGIN)
    (folder / "plugin.yaml").write_text("name: hanging\nversion: 1.0.0\n")
    return folder


def _leave(hermes: Hermes) -> float:
    hermes.fork()
    hermes.chat("hello there")
    return hermes.leave_fork()
