"""A runner whose thread hangs is replaced: what its pool still does is not done twice."""

from typing import Any

from helpers.processes.waiting import wait_until
from helpers.providers.recording import calls, texts
from helpers.stories.scenario import NAME, home, recorded, say, thread_worker, wait_applied
from memorybus.agent.client import MemoryBus
from memorybus.dead_letters.queue import DeadLetters
from memorybus.dead_letters.records import LetterRequest, LetterRequests
from memorybus.ids import new_id
from memorybus.redis.keys import Keys
from memorybus_workers.hosting.host import ProviderHost


def test_a_retry_that_hangs_repeats_no_other_call(
    redis_client, make_settings, monkeypatch, flag, tmp_path
):
    """G4: ``lookup``: a call under way when its runner is replaced ends before another asks."""
    monkeypatch.setattr(ProviderHost, "watch", lambda *_: None)  # we are the watch
    stuck, slow = tmp_path / "stuck", f"!hang={tmp_path / 'slow'} slow"
    stuck.touch()
    (tmp_path / "slow").touch()
    timings = {"partitions": 1, "call_timeout": 3.0, "lease": 30.0}
    settings = make_settings(**timings, **recorded("LookupSide"))
    keys = Keys(settings.namespace)
    with MemoryBus.connect(settings) as bus, thread_worker(settings) as running:
        say(bus, "bad", f"!permanent={flag} x")
        wait_until(lambda: redis_client.xlen(keys.dead(0, NAME)), "it is parked")
        (dead,) = DeadLetters(settings).letters([NAME])
        say(bus, "good", slow)
        wait_until(lambda: slow in calls(home(settings)), "a call is under way")
        edited = {"user": f"!hang={stuck} x", "assistant": "ok"}
        entry = dead.stored.letter.entry
        request = LetterRequest(
            new_id(), 0, "edit", entries=(entry,), event=edited, reason="why", operator="me"
        )
        LetterRequests(redis_client, keys, NAME).send([request])
        host: Any = running._hosts.all[0]
        hanging = host._runner
        wait_until(lambda: f"!hang={stuck} x" in calls(home(settings)), "the retry hangs")
        host._replace(hanging.activity.hanging_call(0.0), redis_client)
        assert redis_client.exists(keys.lease(0, NAME)), "nobody may take the lane yet"
        (tmp_path / "slow").unlink()
        wait_until(lambda: slow in texts(home(settings)), "the call has ended")
        redis_client.delete(keys.lease(0, NAME))  # it has run out
        wait_applied(redis_client, settings)
        assert calls(home(settings)).count(slow) == 1
        stuck.unlink()
        wait_until(lambda: not hanging.alive, "the old thread ends")
