"""What the modules for other frameworks need: their own extra, and nothing that an agent lacks."""

import json
import re
import subprocess
import sys

import pytest

_MODULES = {
    "claude_memory": ("anthropic", "anthropic"),
    "openai_agents": ("agents", "openai-agents"),
    "langgraph_store": ("langgraph", "langgraph"),
    "langchain_middleware": ("langchain", "langgraph"),
}
_LOAD = """
import json, sys
from memorybus_frameworks import {module}
print(json.dumps(sorted(name for name in sys.modules if name.startswith("memorybus")
    or name in ("redis", "rq", "pyarrow"))))
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has imported nothing."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.parametrize("module", _MODULES)
def test_a_missing_library_is_named_with_its_extra(module):
    """Whoever lacks the framework is told the command that installs the extra."""
    library, extra = _MODULES[module]
    lacking = f"import sys; sys.modules[{library!r}] = None\nimport memorybus_frameworks.{module}"
    error = run(lacking).stderr.splitlines()[-1]
    assert re.search(rf"^ImportError: .* is missing .*; run: pip install .*\[{extra}\]", error)


@pytest.mark.slow(reason="a process that imports the whole framework")
@pytest.mark.parametrize("module", _MODULES)
def test_importing_a_module_loads_no_redis(module):
    """An agent of another framework pays for no Redis client before its first read (G9)."""
    pytest.importorskip(_MODULES[module][0], reason="the extra is not installed")
    loaded = json.loads(run(_LOAD.format(module=module)).stdout)
    assert not {"redis", "rq", "pyarrow"}.intersection(loaded)
    assert not [name for name in loaded if name.startswith(("memorybus_console", "memorybus_work"))]
