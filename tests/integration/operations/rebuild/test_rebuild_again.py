"""Rebuilding what was rebuilt: what a plain rebuild keeps, what goes on, who would stay behind."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import msgspec
import pytest
from helpers.providers.given import GivenInstances
from helpers.providers.recording import texts
from helpers.stories.rebuilding import NEXT, fill, ran, settled
from helpers.stories.scenario import NAME, TESTS, home, recorded, say, worker
from memorybus.agent.client import MemoryBus
from memorybus.clock import SYSTEM
from memorybus.errors import ConfigError, Unavailable
from memorybus.query.query import Query
from memorybus.query.ranges import WHOLE, NumberRange, Plan
from memorybus.recall.model import RecallRequest
from memorybus.redis import scripts
from memorybus.redis.keys import Keys
from memorybus.registry.instances import Instance, Instances, Live
from memorybus_console.operations.rebuild.plan import RebuildPlan, RebuildRequest, plan_rebuild
from memorybus_console.operations.stores import Stores
from memorybus_providers.base import RecallContext, Recollection
from memorybus_workers.jobs.prefetch import ReadYourWrites, Recaller

MALLORY = Query(except_users=("mallory",))


@pytest.fixture(name="environment", autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes find the helpers."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def prepared(stores: Stores, **wanted: Any) -> RebuildPlan:
    """Return what a rebuild would do."""
    return plan_rebuild(stores, RebuildRequest(provider=NAME, **wanted), SYSTEM)


# -- what is kept ---------------------------------------------------------------------------------


@pytest.mark.timeout(120)
def test_what_was_left_out_stays_out(redis_client, make_settings, spawn):
    """G8: a plain rebuild leaves out what the live one does, and equals it; --whole takes all."""
    settings = make_settings(**recorded("Transactional"))
    for user in ("ann", "mallory"):
        with MemoryBus.connect(msgspec.structs.replace(settings, user=user)) as bus:
            say(bus, user, f"{user} one", f"{user} two")
            assert bus.flush("logged", 25)
    child = worker(spawn, settings, jobs=1)
    ran(spawn, settings, "rebuild", NAME, "--except-user", "mallory", "--yes")
    plan = ran(spawn, settings, "rebuild", NAME)
    assert (plan["kept"], plan["compared"]) == (["history"], True)
    whole = ran(spawn, settings, "rebuild", NAME, "--whole")
    assert (whole["kept"], whole["compared"]) == ([], False)
    done = ran(spawn, settings, "rebuild", NAME, "--yes")
    assert (done["compared"]["keys"], done["compared"]["differing"]) == (1, 0)
    settled(redis_client, settings, done["live"])
    assert texts(home(settings, done["live"])) == ["ann one", "ann two"]
    assert child.terminate() == 0


def test_all_of_a_plan_is_kept_unless_told(redis_client, make_settings):
    """G8: a gap, people and options of the live one are taken over; each may be told otherwise."""
    settings = make_settings(partitions=1, **recorded("Keyed"))
    fill(settings, "a", 5)
    gap, two = Plan(query=MALLORY, spans={0: (NumberRange(1, 2), NumberRange(4))}), {"model": "two"}
    serves = Instance(name=NEXT, provider=NAME, purpose="rebuild", plan=gap, options=two)
    with Stores(settings) as stores:
        stores.instances.add(serves)
        stores.instances.swap(NAME, None, Live(NEXT, NAME))
        head = stores.history.log.heads()[0].n
        plain = prepared(stores)
        assert (plain.instance.plan, plain.instance.options) == (gap, two)
        assert (plain.kept, plain.compared) == (("history", "options"), True)
        whole = prepared(stores, whole=True, query=Query(except_users=("eve",)))
        assert whole.instance.plan == Plan(query=Query(except_users=("eve",)))
        assert (whole.instance.options, whole.kept) == (two, ("options",))
        earlier = prepared(stores, until="p00:3", options={"model": "three", "size": 1})
        assert earlier.instance.plan == Plan(
            query=MALLORY, spans={0: (NumberRange(1, 2), NumberRange(head + 1))}
        )
        assert earlier.instance.options == {"model": "three", "size": 1}
        assert (earlier.kept, earlier.compared) == (("history",), False)


def test_who_came_late_is_rebuilt_from_where_it_began(redis_client, make_settings):
    """G8: a rebuild of what was added later takes what that took, and no more unless told."""
    settings = make_settings(partitions=1, **recorded("Keyed"))
    fill(settings, "a", 5)
    late = Plan(spans={0: (NumberRange(4),)})
    with Stores(settings) as stores:
        stores.instances.add(Instance(name=NAME, provider=NAME, purpose="added", plan=late))
        plain = prepared(stores)
        assert (plain.instance.plan, plain.compared) == (late, True)
        assert prepared(stores, whole=True).instance.plan == WHOLE


# -- what goes on ---------------------------------------------------------------------------------


def test_the_same_words_go_on(redis_client, make_settings):
    """G8: what was begun goes on by the same command, though the log and the live one went on."""
    settings = make_settings(**recorded("Keyed"))
    fill(settings, "a", 2)
    words: dict[str, Any] = {"until": "2099-01-01", "options": {"day": date(2026, 1, 1)}}
    with Stores(settings) as stores:
        begun = prepared(stores, **words)
        stores.add_instance(begun.instance)
        fill(settings, "b", 2)
        again = prepared(stores, **words)
        assert (again.known, again.instance) == (True, begun.instance)
        for other in ({}, words | {"until": "2098-01-01"}, words | {"whole": True}):
            with pytest.raises(ConfigError, match="another plan"):
                prepared(stores, **other)


# -- what the one before says late ----------------------------------------------------------------


class Answering:
    """Answers recalls with one text, or fails; something happens meanwhile."""

    def __init__(self, text: str, meanwhile: Callable[[], Any] = lambda: None) -> None:
        self._text = text
        self._meanwhile = meanwhile

    def prefetch(self, query: str, context: RecallContext) -> Sequence[Recollection]:
        """Answer."""
        self._meanwhile()
        if not self._text:
            raise Unavailable("the index is being made")
        return [Recollection(self._text)]


@pytest.mark.parametrize("when", ["while it is asked", "when it is stored"])
def test_no_answer_of_before_comes_after_the_swap(when, redis_client, settings):
    """G8: what the one before says late is not kept warm, also if the next one cannot answer."""
    keys = Keys(settings.namespace)

    def swap() -> None:
        Instances(redis_client, keys).swap(NAME, None, Live(NEXT, NAME))

    before = Answering("mallory", swap if when == "while it is asked" else lambda: None)
    opened: dict[str, Any] = {NAME: before, NEXT: Answering("")}
    want = msgspec.json.encode(RecallRequest(query="walnut", budget=500))
    scripts.run(redis_client, scripts.request_recall(keys, "s", want, 60_000))
    applied = ReadYourWrites(redis_client, keys, 0.0, SYSTEM)
    instances = GivenInstances(settings, redis_client, opened.__getitem__)
    recaller = Recaller(redis_client, settings, SYSTEM, instances, applied, lambda _: swap())
    with pytest.raises(Unavailable):
        recaller.warm("s", NAME)
    assert redis_client.hgetall(keys.warm("s")) == {}
    opened[NEXT] = Answering("walnut")
    recaller.warm("s", NAME)
    assert b"walnut" in (redis_client.hget(keys.warm("s"), NAME) or b"")
