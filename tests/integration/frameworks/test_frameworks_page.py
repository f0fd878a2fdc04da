"""The code of docs/frameworks.md runs, with scripted models."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.processes import Spawn
from helpers.services.fake_http import FakeHandler, FakeServer, serving
from helpers.stories.scenario import patient, wait_applied, worker

anthropic = pytest.importorskip("anthropic", reason="the extra anthropic is not installed")
agents = pytest.importorskip("agents", reason="the extra openai-agents is not installed")
pytest.importorskip("langchain", reason="the extra langgraph is not installed")
from agents.testing import ScriptedModel, assistant_message  # noqa: E402
from langchain_core.language_models import FakeMessagesListChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402


class Claude(FakeHandler):
    """A model that keeps what it is told, and repeats what it reads."""

    def serve(self, _: str) -> None:
        """Ask for the tool; then answer with what it returned."""
        # The SDK sends the whole conversation, or a thread's new messages alone.
        prompt, path = json.loads(self.body())["messages"][-1]["content"], "/memories/tea.md"
        if isinstance(prompt, list):
            read = str(prompt[0]["content"])
            content = [{"type": "text", "text": "Kept." if "created" in read else read}]
        else:
            new = {"command": "create", "path": path, "file_text": prompt}
            given = {"command": "view", "path": path} if "?" in prompt else new
            content = [{"type": "tool_use", "id": "toolu_1", "name": "memory", "input": given}]
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        reason = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
        answer |= {"content": content, "stop_reason": reason, "stop_sequence": None}
        self.tell(200, answer | {"usage": {"input_tokens": 1, "output_tokens": 1}})


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
        for block in CODE.findall(PAGE.read_text()):
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
        with serving(FakeServer(Claude)) as server:
            client = anthropic.Anthropic(api_key="none", base_url=server.url)
            assert names["chat"](client, "ann", "I like sage tea.") == "Kept."
            assert "sage" in names["chat"](client, "ann", "Which tea do I like?")
    finally:
        if "bus" in names:
            names["bus"].close()
