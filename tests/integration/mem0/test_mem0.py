"""What events leave in Mem0, what is found there, and the file with its settings."""

import re
import sys

import msgspec
import pytest
from memorybus.errors import (
    ConfigError,
    MissingProvider,
    Permanent,
    install_command,
)
from memorybus.events import (
    Delegated,
    MemoryWritten,
    Scope,
    SessionEnded,
    SessionSwitched,
    TurnCompleted,
)
from memorybus_providers.base import ProviderConfig, RecallScope
from memorybus_providers.contract.samples import (
    HERE,
    OTHER_USER,
    SampleStep,
    feed,
    hook_context,
    recall_context,
    steps,
)
from memorybus_providers.mem0 import Mem0Provider

TURN = TurnCompleted(user="I like tea.", assistant="Noted.", user_name="Ada", ordinal=0)


def test_a_verbatim_turn_is_one_memory(mem0_fake, open_mem0):
    """With inference off a turn is one row, so that it is there wholly or not at all."""
    feed(open_mem0(infer=False), steps(TURN))
    assert mem0_fake.texts() == ["Ada: I like tea.\nAssistant: Noted."]
    assert mem0_fake.infers == [False]


def test_an_inferred_turn_is_sent_as_its_messages(mem0_fake, open_mem0):
    """With inference on Mem0 gets who said what; entries of the stores stay word for word."""
    feed(open_mem0(), steps(TURN, MemoryWritten(action="add", store="user", content="Likes tea.")))
    assert mem0_fake.texts() == ["I like tea.", "Noted.", "Likes tea."]
    assert mem0_fake.infers == [True, False]


def test_a_memory_says_whose_it_is_and_where_it_comes_from(mem0_fake, open_mem0):
    """Each row has its agent, person and event as ids, and a recall tells session and time."""
    provider = open_mem0(infer=False)
    (step,) = steps(TURN)
    feed(provider, [step])
    (row,) = mem0_fake.rows.values()
    assert row["run_id"] == step.event_id
    assert (HERE.agent in row["agent_id"], HERE.user in row["user_id"]) == (True, True)
    (found,) = provider.prefetch("tea", recall_context(HERE))
    assert (found.session, found.event) == (step.session.id, step.event_id)
    assert found.at > 0


def test_a_switch_and_an_end_send_nothing(mem0_fake, open_mem0):
    """What a session does after its turns is no memory."""
    provider = open_mem0()
    feed(provider, steps(SessionSwitched(new_id="two", reason="compression"), SessionEnded()))
    assert mem0_fake.keys == []


def test_a_delegation_is_remembered(mem0_fake, open_mem0):
    """What a sub-agent was asked and answered is a memory."""
    feed(open_mem0(infer=False), steps(Delegated(task="find tea", result="found")))
    assert mem0_fake.texts() == ["Task: find tea\nResult: found"]


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (RecallScope(None, HERE.user, None), 1),
        (RecallScope(HERE.agent, None, None), 1),
        (RecallScope(HERE.agent, HERE.user, ""), 3),
        (RecallScope(None, None, "boat"), 3),
    ],
)
def test_forgetting_reaches_what_the_scope_names(mem0_fake, open_mem0, scope, left):
    """A person, an agent, one owner or a workspace goes, and nobody else; the residue is said."""
    provider = open_mem0(infer=False)
    owners = (
        HERE,
        Scope(agent=HERE.agent, user=HERE.user, workspace="boat"),
        Scope(agent="b", user=HERE.user),
        OTHER_USER,
    )
    for n, owner in enumerate(owners, 1):
        feed(provider, [SampleStep(n, TURN, owner)])
    assert len(list(provider.export(scope))) == len(owners) - left
    assert "history" in provider.forget(scope).remains[0]
    assert len(mem0_fake.texts()) == left
    assert provider.forget(scope).erased in {None, 0}


def test_an_export_that_may_lack_something_says_so(mem0_fake, open_mem0):
    """A server that shows 20 memories at most is not taken for one that has no more."""
    provider = open_mem0(infer=False)
    for n in range(1, 23):
        feed(provider, [SampleStep(n, TURN, HERE)])
    assert len(list(provider.export(RecallScope.own(HERE)))) == 22
    mem0_fake.shown = 20
    with pytest.raises(Permanent, match="20"):
        list(provider.export(RecallScope.own(HERE)))


def test_the_tools_add_and_search_for_their_owner(open_mem0):
    """What a model adds, it and nobody else finds."""
    provider = open_mem0()
    ctx = hook_context(steps(TURN)[0])
    added = provider.handle_tool_call("mem0_add", {"content": "Born in May."}, ctx)
    assert added == {"ok": True}
    found = provider.handle_tool_call("mem0_search", {"query": "Born when?"}, ctx)
    assert [one["text"] for one in found["results"]] == ["Born in May."]
    theirs = hook_context(SampleStep(1, TURN, OTHER_USER))
    assert provider.handle_tool_call("mem0_search", {"query": "Born?"}, theirs) == {"results": []}
    assert "error" in provider.handle_tool_call("mem0_search", {"q": "a"}, ctx)
    assert "no tool" in provider.handle_tool_call("mem0_dream", {}, ctx)["error"]


@pytest.mark.parametrize(
    ("told", "mode", "said"),
    [
        ("{", 0o600, "cannot be read"),
        ("{}", 0o644, "chmod 600"),
        ("{}", 0o600, "within one process"),
        (
            '{"vector_store": {"provider": "qdrant", "config": {"path": "/x"}}}',
            0o600,
            "one process",
        ),
        ('{"vector_store": {"provider": "faiss", "config": {}}}', 0o600, "within one process"),
    ],
)
def test_a_file_that_cannot_serve_is_refused(tmp_path, told, mode, said):
    """Mem0's settings hold keys, so nobody else may read them, and name a store for all workers."""
    file = tmp_path / "mem0.json"
    file.write_text(told)
    file.chmod(mode)
    options = {"config_file": str(file)}
    provider = Mem0Provider(ProviderConfig(name="m", home=tmp_path, options=options))
    with pytest.raises(ConfigError, match=said):
        provider.open()


def test_without_its_library_the_remedy_is_named(tmp_path, monkeypatch):
    """Who lacks the extra is told how to install it."""
    monkeypatch.setitem(sys.modules, "mem0", None)
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    file = tmp_path / "mem0.json"
    store = {"provider": "pgvector", "config": {"connection_string": "postgresql:///x"}}
    file.write_bytes(msgspec.json.encode({"vector_store": store}))
    file.chmod(0o600)
    options = {"config_file": str(file)}
    provider = Mem0Provider(ProviderConfig(name="m", home=tmp_path, options=options))
    with pytest.raises(MissingProvider, match=re.escape(install_command("mem0"))):
        provider.open()
