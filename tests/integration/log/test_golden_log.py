"""Logs and archives that older releases left stay readable, entry by entry."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.archive.golden_archive import LOG_ID, NAMESPACE, SEGMENTS
from helpers.archive.golden_log import PARTITIONS, Entry, as_expected, left_out, restore, stored
from helpers.archive.past import read_all
from helpers.making import MakeSettings
from memorybus.archive.archive import Archive
from memorybus.config.settings import Settings
from memorybus.history.history import History
from memorybus.log.stream import START, EventLog
from memorybus.redis.connect import connect_redis
from memorybus.redis.keys import Keys

GOLDEN = Path(__file__).parents[2] / "golden"
RELEASES = pytest.mark.parametrize(
    "release", sorted(GOLDEN.glob("history-*")), ids=lambda path: path.name
)
_SEALED = {partition: ends[-1] for partition, ends in SEGMENTS.items()}


@pytest.fixture
def settings(redis_url: str, make_settings: MakeSettings) -> Settings:
    """Return settings of a log with as many partitions as the golden ones."""
    return make_settings(url=redis_url, partitions=PARTITIONS, namespace=NAMESPACE)


def expected(release: Path) -> list[dict[str, Any]]:
    """Return what the log held, as it was written down once."""
    return [json.loads(line) for line in (release / "events.jsonl").read_text().splitlines()]


def remembered(release: Path) -> list[dict[str, Any]]:
    """Return what the history is to give: without what is volatile, and what is forgotten."""
    return [_hidden(one) for one in expected(release)]


def _hidden(one: dict[str, Any]) -> dict[str, Any]:
    place = (one["partition"], one["entry"], one["n"])
    if one["envelope"]["scope"].get("user") == "mallory":
        return left_out(*place, "forgotten")
    if one["envelope"]["event"]["type"] == "TurnStarted":
        return left_out(*place, "volatile")
    return one


def ours(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that memorybus wrote: entries of others are no events."""
    return [one for one in events if not _is_foreign(one)]


def _is_foreign(one: dict[str, Any]) -> bool:
    envelope = one.get("envelope")
    return envelope is not None and envelope["event"].get("name") == "ValueError"


def of_partition(events: list[Any], partition: int) -> list[Any]:
    return [one for one in events if one["partition"] == partition]


def unsealed(entries: list[Entry]) -> list[Entry]:
    """Return the entries that the golden archive does not have."""
    by_partition = [[e for e in entries if e.partition == p] for p in range(PARTITIONS)]
    return [e for p, of in enumerate(by_partition) for e in of[_SEALED[p] :]]


@RELEASES
def test_a_log_of_an_older_release_is_read(release, settings, redis_client):
    """G7: every event an older release left is what it was, packed, resent or newer."""
    entries = stored(release / "log.jsonl")
    heads = {partition: {"n": 99} for partition in range(PARTITIONS)}
    restore(redis_client, Keys(settings.namespace), LOG_ID, entries, heads)
    log = EventLog(connect_redis(settings), settings)
    log.open()
    found = [as_expected(e) for p in range(PARTITIONS) for e in log.read(p, START, 100)]
    assert found == ours(expected(release))


@RELEASES
def test_an_archive_of_an_older_release_is_sound(release, settings):
    """G7: manifests and segments that an older release sealed still pass every check."""
    with closing(_archive(release, settings)) as archive:
        reports = list(archive.verify(range(PARTITIONS)))
    found = {report.file: report.why for report in reports if report.found != "sound"}
    assert found == {}
    assert sum(report.events for report in reports) == sum(_SEALED.values())


@RELEASES
def test_an_archive_of_an_older_release_is_read(release, settings):
    """G7: what an older release sealed is what its log held, and its tombstones hold."""
    with closing(_archive(release, settings)) as archive:
        for partition in range(PARTITIONS):
            found = [as_expected(event) for event in archive.read(partition, START, 100)]
            known = of_partition(remembered(release), partition)[: _SEALED[partition]]
            assert found == ours(known)


@RELEASES
@pytest.mark.parametrize("count", [1, 3, 100])
def test_a_history_of_an_older_release_is_read(release, settings, redis_client, count):
    """G7: an old archive and the rest of an old log are one sequence, whatever the page."""
    rest = unsealed(stored(release / "log.jsonl"))
    restore(redis_client, Keys(settings.namespace), LOG_ID, rest, heads_of(release))
    log = EventLog(connect_redis(settings), settings)
    with closing(_archive(release, settings)) as archive, closing(History(log, archive)) as history:
        for partition in range(PARTITIONS):
            found = [as_expected(event) for event in read_all(history, count, partition)]
            assert found == ours(of_partition(remembered(release), partition))


def heads_of(release: Path) -> dict[int, dict[str, int]]:
    """Return each partition's counters, once most of it is sealed."""
    numbers = {p: [e["n"] for e in of_partition(expected(release), p)] for p in range(PARTITIONS)}
    return {p: {"n": n[-1], "sealed": n[_SEALED[p] - 1]} for p, n in numbers.items()}


def _archive(release: Path, settings: Settings) -> Archive:
    return Archive.from_settings(
        msgspec.structs.replace(settings, archive=str(release / "archive")), LOG_ID
    )
