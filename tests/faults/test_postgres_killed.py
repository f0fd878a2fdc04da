"""SIGKILL for a PostgreSQL server and for workers under load (G3, G4, G6)."""

import re

import psycopg
import pytest
from helpers.faults.oracle import Effect, judge
from helpers.faults.scale import times
from helpers.faults.trial import demand
from helpers.processes.waiting import wait_until
from helpers.services.postgres_server import PostgresServer

WORKERS = 3
DEATHS = times(8, 2)
RATE = 400

_SAID = """
select encode(event_id, 'hex'), root, content from memorybus.facts
join memorybus.sessions on sessions.id = facts.session
where kind = 'user' and facts.name like '%-0' order by facts.session, seq
"""


def effects(server: PostgresServer) -> list[Effect]:
    """Return the turns that the tables hold, in the order of their sessions."""
    with psycopg.connect(server.url()) as db:
        rows = db.execute(_SAID).fetchall()
    return [Effect(event, root, int(re.match(r"\d+", text)[0])) for event, root, text in rows]


@pytest.mark.fault
@pytest.mark.timeout(600)
def test_postgres_and_workers_are_killed(aof_redis, own_postgres, make_trial, report):
    """G3, G4: both are killed in turn while events flow: nothing is lost, doubled or reordered."""
    table = {"kind": "postgres", "url": own_postgres.url()}
    trial = make_trial(
        aof_redis,
        providers=("postgres",),
        provider={"postgres": table},
        lease=3.0,
        call_timeout=2.0,
    )
    trial.crew.start(WORKERS)
    trial.crew.wait_ready()
    trial.write("--rate", RATE)
    for number in range(DEATHS):
        before = trial.epochs()
        trial.catch(f"death {number}")
        if number % 2:
            trial.crew.kill(trial.rng.choice(trial.crew.members))
            trial.crew.start(1)
            trial.crew.wait_ready()
            wait_until(lambda before=before: trial.epochs() > before, "lanes are taken over", 60)
        else:
            own_postgres.kill()
            own_postgres.start()
            applied = len(effects(own_postgres))
            wait_until(
                lambda applied=applied: len(effects(own_postgres)) > applied, "lanes go on", 60
            )
    trial.drain()
    trial.crew.stop()
    demand(trial.faults, DEATHS)

    found = effects(own_postgres)
    verdict = judge(trial.receipts(), found, parked=trial.parked("postgres"))
    report(
        faults=len(trial.faults),
        events=verdict.accepted,
        lost=len(verdict.lost),
        twice=verdict.repeats,
    )
    assert not verdict.faults()
    assert not verdict.parked
