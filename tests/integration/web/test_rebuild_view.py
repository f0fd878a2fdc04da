"""Rebuilding from the page, with a real worker."""

import pytest
from helpers.processes.waiting import wait_until
from helpers.stories.rebuilding import fill
from helpers.stories.scenario import NAME, TESTS, recorded, worker
from helpers.web.pages import HASH, Visitor, served
from memorybus.registry.instances import live_name
from memorybus_console.operations.stores import Stores


@pytest.mark.timeout(180)
def test_a_rebuild_a_rollback_and_a_drop_from_the_page(
    redis_url, make_settings, spawn, monkeypatch
):
    """G8: the page shows the plan, does each, compares both, and tells what it came to."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    settings = make_settings(url=redis_url, page_token=HASH, **recorded("Transactional"))
    fill(settings, "ab", 5)
    child = worker(spawn, settings, jobs=1)
    with served(settings) as visitor, Stores(settings) as stores:
        visitor.sign_in("ann")
        plan = visitor.get(f"/history/{NAME}").text
        assert f'{NAME}@1</span>, beside <span class="id">{NAME}</span>' in plan
        assert "nothing to roll back to" in plan
        _do(visitor, "rebuild", f"{NAME}@1 is live for {NAME};")
        assert live_name(NAME, stores.instances.live()) == f"{NAME}@1"
        both = visitor.get(f"/history/{NAME}/diff?q=a+1")
        assert "Both recall the same" in both.text, both.text
        _do(visitor, "rollback", f"{NAME} is live for {NAME}")
        assert live_name(NAME, stores.instances.live()) == NAME
        _do(visitor, "drop", "dropped: ")
        assert visitor.get("/history").text.count("by ann") == 3
    assert child.terminate() == 0


def _do(visitor: Visitor, act: str, said: str) -> None:
    form = {"proof": visitor.proof(), "why": "a test"}
    assert visitor.post(f"/history/{NAME}/{act}", form).headers["location"] == "/history"
    wait_until(lambda: said in visitor.get("/history").text, f"{act}: {said}", timeout=60)
