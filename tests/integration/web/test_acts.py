"""Acts on the page: who, why, and what the log is told."""

import pytest
from helpers.making import MakeSettings
from helpers.stories.published import published
from helpers.web.pages import HASH, served
from memorybus.config.settings import Settings
from memorybus.events import OperatorActed
from memorybus_console.operations.stores import Stores


@pytest.fixture(name="guarded")
def _guarded(make_settings: MakeSettings, redis_url: str) -> Settings:
    return make_settings(url=redis_url, page_token=HASH)


def test_an_act_that_fails_is_told_so(guarded):
    """The log is told before an act, and again if it could not be done; people are told why."""
    with served(guarded) as visitor:
        visitor.sign_in("ann")
        form = {"proof": visitor.proof(), "why": "I try"}
        answer = visitor.post("/providers/nobody/pause", form)
    assert answer.status == 409
    assert "nobody" in answer.text
    first, second = published(guarded, OperatorActed)
    assert (first.failed, second.act) == ("", "pause provider")
    assert "nobody" in second.failed


def test_a_provider_is_retried_from_its_page(guarded: Settings):
    """The act is done, recorded, and leads back to the provider."""
    with served(guarded) as visitor:
        visitor.sign_in("ann")
        form = {"proof": visitor.proof(), "why": "its server is up again"}
        answer = visitor.post("/providers/builtin/retry-now", form)
    assert (answer.status, answer.headers["location"]) == (303, "/providers/builtin")
    assert [
        (act.act, act.operator, act.reason, act.failed) for act in published(guarded, OperatorActed)
    ] == [("retry provider now", "ann", "its server is up again", "")]


def test_nobody_acts_by_a_form_of_others(guarded: Settings):
    """Without the proof, with another's, or from elsewhere nothing is done."""
    with served(guarded) as visitor:
        visitor.sign_in("ann")
        proof = visitor.proof()
        path = "/providers/builtin/pause"
        assert visitor.post(path, {"why": "x"}).status == 403
        assert visitor.post(path, {"why": "x", "proof": "0" * 64}).status == 403
        evil = {"Origin": "http://evil.example"}
        assert visitor.post(path, {"why": "x", "proof": proof}, **evil).status == 403
        visitor.headers.pop("Cookie")
        assert visitor.post(path, {"why": "x", "proof": proof}).status == 403
    assert published(guarded, OperatorActed) == []
    with Stores(guarded) as stores:
        assert stores.instances.pauses() == {}


def test_without_a_token_nobody_acts(settings):
    """Who has not signed in changes nothing."""
    with served(settings) as visitor:
        answer = visitor.post("/providers/builtin/pause", {"why": "x", "proof": ""})
        assert answer.status == 403
        assert "sign in first" in answer.text
