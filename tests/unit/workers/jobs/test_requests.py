"""What a recall process takes for a request, and what the asker gets."""

import msgspec
import pytest
from memorybus.config.settings import Settings
from memorybus.errors import Permanent, Unavailable
from memorybus.jobs.inspect import CheckHealth, Inspection
from memorybus.jobs.tools import ToolRequest
from memorybus.jobs.waiting import Reply, read_replies
from memorybus.redis.keys import Keys
from memorybus_workers.jobs.tools import answer_request, parse_request

ASKED = Inspection(id="a" * 32, provider="p", instance="p", question=CheckHealth())


@pytest.mark.parametrize("kind", [Inspection, ToolRequest])
@pytest.mark.parametrize("body", ["", "{}", "[" * 5_000, "\ud800", 7])
def test_what_is_no_request_is_refused(kind, body):
    """G9: anybody who can write to Redis may have sent it: it costs an error and nothing else."""
    with pytest.raises(Permanent, match=f"no {kind.__name__}"):
        parse_request(body, kind)


def test_an_id_that_is_none_is_refused():
    """No reply is written to a key that somebody else chooses."""
    assert parse_request(msgspec.json.encode(ASKED).decode(), Inspection) == ASKED
    other = msgspec.json.encode(msgspec.structs.replace(ASKED, id="a:b")).decode()
    with pytest.raises(Permanent, match="its id is none"):
        parse_request(other, Inspection)


def test_who_asks_gets_the_error_which_goes_on(fake_redis):
    """G9: nobody waits in vain for what failed, and the failure is the job's, too."""
    settings = Settings()
    key = Keys(settings.namespace).reply(0, ASKED.id)

    def fail() -> Reply:
        raise Unavailable("the backend is down")

    with pytest.raises(Unavailable):
        answer_request(fake_redis, settings, 0, ASKED, fail)
    assert "the backend is down" in read_replies(fake_redis.hgetall(key))["p"].error
    answer_request(fake_redis, settings, 0, ASKED, lambda: Reply("well"))
    assert read_replies(fake_redis.hgetall(key)) == {"p": Reply("well")}
