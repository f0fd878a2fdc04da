"""Claude's memory tool of the real SDK on the bus: nothing leaves the machine."""

from typing import Any

import msgspec
import pytest
from helpers.making import MakeSettings
from helpers.redis.clusters import free_ports
from helpers.stories.scenario import patient, wait_applied, worker
from memorybus import MemoryBus, Scope
from memorybus.config.settings import Settings
from memorybus.events import Envelope, MemoryWritten, SessionRef

tools = pytest.importorskip("anthropic.lib.tools", reason="the extra anthropic is not installed")
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool  # noqa: E402
from memorybus_frameworks.claude_memory import MemoryTool  # noqa: E402
from memorybus_frameworks.memory_files import fold  # noqa: E402

pytestmark = pytest.mark.timeout(180)

TEA = {"command": "create", "path": "/memories/tea.md", "file_text": "Mint\nOolong\n"}


@pytest.fixture(name="settings")
def _settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    return patient(make_settings(url=redis_url, providers=("holographic",), partitions=2))


def tool_of(bus: MemoryBus, user: str = "ann") -> MemoryTool:
    """Return the tool of a person."""
    return MemoryTool(bus, bus.session(f"s-{user}", agent="gardener", user=user, warm=False))


def ask(tool: Any, command: str, **given: Any) -> str:
    """Let a model use a tool, by the class of the SDK; return what it reads."""
    try:
        return str(tool.call({"command": command, **given}))
    except tools.ToolError as error:
        return f"error: {error}"


def view(tool: Any, path: str) -> str:
    """Return what a model sees at a path."""
    return ask(tool, "view", path=path)


COURSE: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories/none"},
    TEA,
    TEA,
    {"command": "create", "path": "/memories/people/ann.md", "file_text": "Ann: tea\nAnn: plums"},
    {"command": "create", "path": "/memories/people", "file_text": "x"},
    {"command": "str_replace", "path": "/memories/tea.md", "old_str": "Mint", "new_str": "Sage\n+"},
    {"command": "str_replace", "path": "/memories/tea.md", "old_str": "Mint", "new_str": ""},
    {"command": "str_replace", "path": "/memories/people/ann.md", "old_str": "Ann", "new_str": ""},
    {"command": "str_replace", "path": "/memories/people", "old_str": "Ann", "new_str": ""},
    {"command": "insert", "path": "/memories/tea.md", "insert_line": 0, "insert_text": "Teas:\n"},
    {"command": "insert", "path": "/memories/tea.md", "insert_line": 4, "insert_text": "end"},
    {"command": "insert", "path": "/memories/tea.md", "insert_line": 9, "insert_text": "x"},
    {"command": "insert", "path": "/memories/none", "insert_line": 0, "insert_text": "x"},
    {"command": "rename", "old_path": "/memories/tea.md", "new_path": "/memories/people/ann.md"},
    {"command": "rename", "old_path": "/memories/people", "new_path": "/memories/them/a"},
    {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/y"},
    {"command": "create", "path": "/memories/empty.md", "file_text": ""},
    {"command": "view", "path": "/memories/tea.md", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/tea.md", "view_range": [3, -1]},
    {"command": "delete", "path": "/memories"},
    {"command": "delete", "path": "/memories/none"},
    {"command": "delete", "path": "/memories/empty.md"},
    {"command": "delete", "path": "/memories/them"},
    {"command": "view", "path": "/memories/them"},
]


def test_a_model_uses_it_as_the_tool_of_the_sdk(settings, tmp_path):
    """Each command does what it does with the SDK's own files, and fails where it fails there."""
    files = BetaLocalFilesystemMemoryTool(str(tmp_path))
    with MemoryBus.connect(settings) as bus:
        tool = tool_of(bus)
        assert tool.to_dict() == files.to_dict()
        for step in COURSE:
            ours, theirs = ask(tool, **step), ask(files, **step)
            assert ours.startswith("error") == theirs.startswith("error"), (step, ours, theirs)
            for path in ("tea.md", "people/ann.md", "them/a/ann.md", "empty.md"):
                shown = view(files, f"/memories/{path}")
                assert view(tool, f"/memories/{path}") == shown, step
        assert ask(tool, "delete", path="/memories/tea.md").startswith("Successfully")
        assert view(tool, "/memories").splitlines()[1:] == ["0B\t/memories"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "memories/x", "/memories/../x", "/memories/a/../../b", "/memories/./x",
        "/memories//x", "/memoriesx", "/memories/a\\..\\b", "/memories/a\nb", "/memories/a\0b",
        "", "/", "/memories/" + "x" * 600,
    ],
)  # fmt: skip
def test_a_path_stays_below_the_memories(settings, path):
    """A path that leads elsewhere, or is none, is refused by every command."""
    with MemoryBus.connect(settings) as bus:
        tool = tool_of(bus)
        for command, given in (
            ("view", {"path": path}),
            ("create", {"path": path, "file_text": "x"}),
            ("str_replace", {"path": path, "old_str": "x", "new_str": "y"}),
            ("insert", {"path": path, "insert_line": 0, "insert_text": "x"}),
            ("delete", {"path": path}),
            ("rename", {"old_path": path, "new_path": "/memories/x"}),
            ("rename", {"old_path": "/memories/x", "new_path": path}),
        ):
            assert ask(tool, command, **given).startswith("error: Path"), command
        assert view(tool, "/memories").splitlines()[1:] == ["0B\t/memories"]


def test_files_are_of_one_person_and_survive_a_restart(settings, make_settings):
    """Another process and another host read the same files; another person has none of them."""
    with MemoryBus.connect(settings) as bus:
        ask(tool_of(bus), **TEA)
        assert "Oolong" in view(tool_of(bus), "/memories/tea.md")
        assert "does not exist" in view(tool_of(bus, "bob"), "/memories/tea.md")
    elsewhere = msgspec.structs.replace(settings, data_dir=make_settings().data_dir)
    with MemoryBus.connect(elsewhere) as bus:
        assert "Oolong" in view(tool_of(bus), "/memories/tea.md")
        assert "tea.md" in view(tool_of(bus), "/memories")
        assert "tea.md" not in view(tool_of(bus, "bob"), "/memories")


def test_providers_get_each_change(spawn, settings, redis_client):
    """What a file says is recalled, what it said before is not, and nothing once it is deleted."""
    worker(spawn, settings, jobs=1)

    def recalled(bus: MemoryBus, user: str = "ann") -> str:
        wait_applied(redis_client, settings, "holographic")
        return bus.recall("Which tea is liked?", agent="gardener", user=user).text

    with MemoryBus.connect(settings) as bus:
        tool = tool_of(bus)
        ask(tool, "create", path="/memories/tea.md", file_text="The tea that Ann likes is mint.")
        view(tool, "/memories")
        assert "mint" in recalled(bus)
        assert "mint" not in recalled(bus, "bob")
        ask(tool, "str_replace", path="/memories/tea.md", old_str="mint", new_str="sage")
        view(tool, "/memories")
        former, _, now = recalled(bus).partition("] /memories/tea.md")
        assert ("before: " in former, "sage" in now, "mint" in now) == (True, True, False)
        ask(tool, "delete", path="/memories/tea.md")
        view(tool, "/memories")
        assert "sage" not in recalled(bus)


def test_memory_that_cannot_be_read_is_an_error_for_the_model(make_settings):
    """While Redis is away a command fails in words; nothing is shown as empty."""
    settings = make_settings(url=f"redis://127.0.0.1:{free_ports(1)[0]}/0")
    with MemoryBus.connect(settings) as bus:
        tool = tool_of(bus)
        assert view(tool, "/memories").startswith("error: Memory cannot be used now")


def written(action: str, content: str = "", old_text: str = "", *, ours: bool = True) -> Envelope:
    """Return a write to the person's memory, by the tool or by others."""
    provenance = {"tool": "memory_20250818"} if ours else {}
    event = MemoryWritten(
        action=action, store="user", content=content, old_text=old_text, provenance=provenance
    )
    scope = Scope(agent="gardener", user="ann")
    return Envelope(
        id="0" * 32, key="k", scope=scope, session=SessionRef(id="s", root="s"), at=1, event=event
    )


@pytest.mark.parametrize(
    ("events", "files"),
    [
        ([written("add", "/memories/a\nx")], {"/memories/a": "x"}),
        ([written("add", "Likes tea.", ours=False)], {}),
        (
            [written("add", "/memories/a\nx y"), written("remove", "", "x y", ours=False)],
            {},
        ),
        (
            [written("add", "/memories/a\nx y"), written("replace", "z", "x", ours=False)],
            {"/memories/a": "z"},
        ),
        (
            [
                written("add", "/memories/a\nx"),
                written("replace", "/memories/a\nz", "/memories/a\nx", ours=False),
            ],
            {"/memories/a": "z"},
        ),
        ([written("replace", "z", "nothing", ours=False)], {}),
        (
            [written("add", "/memories/a\nx y"), written("remove", "", " ", ours=False)],
            {"/memories/a": "x y"},
        ),
    ],
)
def test_others_may_correct_and_delete(events, files):
    """A person's correction of a memory changes the file, a deletion removes it."""
    assert fold(events) == files
