"""The homes of a worker's local instances: which it claims, and which it leaves to others."""

from types import SimpleNamespace
from typing import cast

import redis
from memorybus.config.settings import Settings
from memorybus.redis.keys import Keys
from memorybus.registry.homes import Home, Homes, local_home
from memorybus_workers.hosting.served import ServedInstances
from memorybus_workers.membership import home_claims
from memorybus_workers.membership.home_claims import HomeClaims

NAME = "notes"
OTHER_HOME = Home("0" * 32, "another-host", "/data", "7")


def claims_of(settings: Settings, client: redis.Redis) -> HomeClaims:
    """Return the claims of a worker of one local and one shared instance."""
    infos = {
        NAME: SimpleNamespace(placement="local"),
        "service": SimpleNamespace(placement="shared"),
    }
    return HomeClaims(settings, client, cast("ServedInstances", SimpleNamespace(infos=infos)))


def test_a_local_instance_without_a_home_gets_one_here(redis_client, settings):
    """G4: the first worker that serves a local instance gives it its home; others need none."""
    claims = claims_of(settings, redis_client)
    claims.claim()
    homes = Homes(redis_client, Keys(settings.namespace)).all()
    assert homes == {NAME: local_home(settings)}
    assert not claims.is_elsewhere(NAME)


def test_a_home_that_was_lost_is_left_to_its_owner_for_a_while(redis_client, settings):
    """G4: who has the state claims it first; if nobody does, another worker serves it in time."""
    keys = Keys(settings.namespace)
    homes = Homes(redis_client, keys)
    homes.claim(NAME, OTHER_HOME)
    claims = claims_of(settings, redis_client)
    claims.claim()
    assert claims.is_elsewhere(NAME)
    redis_client.delete(keys.homes)
    for _ in range(home_claims._LOOKS_BEFORE_CLAIM):
        claims.look()
        assert claims.is_elsewhere(NAME)
        assert homes.all() == {}
    claims.look()
    assert not claims.is_elsewhere(NAME)
    assert homes.all() == {NAME: local_home(settings)}
