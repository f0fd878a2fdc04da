"""What a session asks for."""

import msgspec
import pytest
from memorybus.events import Scope, SessionRef
from memorybus.recall.model import RecallRequest, build_request


@pytest.mark.parametrize("workspace", ["", "boat"])
def test_a_request_says_in_full_whose_memories(workspace):
    """G9: no part of a session's scope is left to a reader, whose defaults may be wider."""
    scope = Scope(workspace=workspace, platform="cli")
    written = msgspec.json.encode(build_request(scope, SessionRef("s", "s"), "q", 100))
    named = msgspec.json.decode(written, type=dict[str, object])
    assert [named[part] for part in ("agent", "user", "workspace")] == [
        scope.agent,
        scope.user,
        workspace,
    ]
    assert msgspec.json.decode(written, type=RecallRequest).workspace == workspace
