"""The code of docs/frameworks.md runs, with scripted models."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.stories.scenario import patient, wait_applied, worker

agents = pytest.importorskip("agents", reason="the extra openai-agents is not installed")
pytest.importorskip("langchain", reason="the extra langgraph is not installed")
from agents.testing import ScriptedModel, assistant_message  # noqa: E402
from langchain_core.language_models import FakeMessagesListChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402

PAGE = Path(__file__).parents[3] / "docs" / "frameworks.md"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(180)
def test_the_page_runs(
    make_settings: MakeSettings,
    redis_url: str,
    redis_client: Any,
    spawn: Spawn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Its code runs from top to bottom; what one framework taught, the other one recalls."""
    settings = patient(make_settings(url=redis_url, providers=("holographic",)))
    worker(spawn, settings, jobs=1)
    given = {"url": redis_url, "namespace": settings.namespace, "data_dir": settings.data_dir}
    lines = [f'{name} = "{value}"' for name, value in given.items()]
    (tmp_path / "memorybus.toml").write_text("\n".join([*lines, 'providers = ["holographic"]']))
    monkeypatch.chdir(tmp_path)
    agents.set_tracing_disabled(True)
    names: dict[str, Any] = {}
    try:
        for block in re.findall(
            r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
        ):
            exec(compile(block, str(PAGE), "exec"), names)
        assert [item.key for item in names["found"]] == ["tea"]
        model = ScriptedModel([[assistant_message("Noted.")]])
        agent = agents.Agent(name="gardener", model=model)
        said = "My brass ladder leans on the plum tree."
        assert asyncio.run(names["answer"](agent, "ann", "chat", said, "r-1")) == "Noted."
        assert names["bus"].flush("logged", 20)
        wait_applied(redis_client, settings, "holographic")
        answering = FakeMessagesListChatModel(responses=[AIMessage("By the tree.")])
        built = names["build_agent"](answering)
        question = "Where does the brass ladder lean?"
        assert names["ask"](built, "ann", "t-1", question)["messages"][-1].text == "By the tree."
        recalled = names["bus"].recall(question, agent="gardener", user="ann", timeout=20)
        assert "plum tree" in recalled.text
    finally:
        if "bus" in names:
            names["bus"].close()
