"""A command of one typed function, as CONTRIBUTING.md shows it."""

import importlib.util
import json
import re
import textwrap
from pathlib import Path

from cyclopts import App
from memorybus.agent.client import MemoryBus

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^  ```python\n(.*?)^  ```$", re.MULTILINE | re.DOTALL)


def shown_command(directory: Path) -> App:
    """Return an application with the command of the page alone."""
    (text,) = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
    path = directory / "backlog.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location("backlog", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = App(name="memorybus", result_action="return_value")
    app.command(module.run_backlog, name="backlog")
    return app


def test_a_command_is_one_typed_function(ready, tmp_path, capsys):
    """What CONTRIBUTING.md shows is a table for people, and JSON for programs."""
    with MemoryBus.connect(ready) as bus:
        bus.session("s").turn_completed("Where is the ladder?", "Behind the shed.")
        assert bus.flush(timeout=30)
    run = shown_command(tmp_path)

    assert run(["backlog"]) == 0
    printed = capsys.readouterr().out
    assert "events waiting" in printed
    assert run(["backlog", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["provider"] for row in rows} == set(ready.providers)
    assert all(set(row) == {"provider", "backlog"} for row in rows)
