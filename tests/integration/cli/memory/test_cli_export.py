"""``memorybus export`` and ``ingest`` of what it wrote: a person moves out, and in."""

import json
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from helpers.making import MakeSettings
from helpers.processes.commands import result_of
from helpers.stories.people import publish
from helpers.stories.published import envelopes
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings
from memorybus.events import Envelope, TurnStarted
from memorybus.redis.connect import connect_redis
from memorybus_console.cli import main
from memorybus_workers.archiving.archiver import run_once


def by_key(envelopes: Iterable[Envelope]) -> dict[str, list[Envelope]]:
    """Return events in the order of their keys: between keys there is none."""
    found: dict[str, list[Envelope]] = {}
    for one in envelopes:
        found.setdefault(one.key, []).append(one)
    return found


def lived(settings: Settings) -> None:
    """Publish two people's turns, half of them sealed, and what else happens in ann's life."""
    publish(settings, 5)
    run_once(settings)
    with MemoryBus.connect(settings) as bus:
        session = bus.session("s-ann", user="ann", warm=False)
        session.publish(TurnStarted(message="volatile"), "")
        session.memory_written("add", store="user", content="Ann's cat is called \u202eMiez\x07")
        said = session.turn_completed("again", "yes", messages=[{"role": "tool", "x": [1.5, None]}])
        session.undo(said)
        bus.session("w", user="ann", workspace="boat", agent="pilot", warm=False).ended("over")
        assert bus.flush("logged", 10)


@pytest.fixture
def elsewhere(
    ready: Settings, make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Settings]:
    """Return a function after which commands mean another, empty log with other partitions."""

    def switch() -> Settings:
        other = make_settings(url=ready.url, namespace=f"{ready.namespace}x", partitions=4)
        monkeypatch.setenv("MEMORYBUS_NAMESPACE", other.namespace)
        monkeypatch.setenv("MEMORYBUS_PARTITIONS", "4")
        return other

    return switch


def test_a_person_moves_to_another_log_whole_and_once(ready, elsewhere, tmp_path, capsys):
    """G2, G7: every event of ann's arrives as it was, in order; twice adds nothing."""
    lived(ready)
    file = tmp_path / "ann.jsonl"
    code, out = result_of(capsys, "export", str(file), "--user", "ann")
    hers = [
        one
        for one in envelopes(ready)
        if one.scope.user == "ann" and not isinstance(one.event, TurnStarted)
    ]
    assert (code, out["events"], out["left_out_events"]) == (0, len(hers), 0)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert result_of(capsys, "ingest", str(file))[1]["new_events"] == 0

    other = elsewhere()
    code, did = result_of(capsys, "ingest", str(file))
    assert (code, did["events"], did["new_events"], did["level"]) == (
        0,
        len(hers),
        len(hers),
        "logged",
    )
    assert by_key(envelopes(other)) == by_key(hers)
    assert result_of(capsys, "ingest", str(file))[1]["new_events"] == 0

    back = tmp_path / "back.jsonl"
    assert result_of(capsys, "export", str(back), "--user", "ann")[0] == 0
    assert sorted(back.read_bytes().splitlines()) == sorted(file.read_bytes().splitlines())


def test_what_was_sealed_long_ago_is_not_taken_in_again(ready, tmp_path, capsys):
    """G2: an export read after its events left the log adds nothing: the archive is asked, too."""
    publish(ready, 3)
    file = tmp_path / "ann.jsonl"
    assert result_of(capsys, "export", str(file), "--user", "ann")[1]["events"] == 4
    run_once(ready)
    redis = connect_redis(ready)
    for name in redis.scan_iter(f"*{ready.namespace}*seen*"):
        redis.delete(name)
    assert result_of(capsys, "ingest", str(file))[1]["new_events"] == 0
    assert len(envelopes(ready)) == 8


def test_scope_and_time_choose(ready, tmp_path, capsys):
    """Agent, workspace and time narrow an export; --until is exclusive."""
    lived(ready)

    def count(*words: str) -> int:
        code, out = result_of(capsys, "export", str(tmp_path / "e"), "--user", "ann", *words)
        assert code == 0
        return int(out["events"])

    assert count("--workspace", "boat") == count("--agent", "pilot") == 2
    assert count("--workspace", "") == count() - 2
    assert count("--since", "2200-01-01") == count("--until", "2000-01-01") == 0
    assert count("--since", "2000-01-01", "--until", "2200-01-01") == count()
    assert main(["export", "--user", "ann", "--since", "tomorrow"]) == 2
    assert main(["export"]) == main(["export", "--empty-user"]) == 2
    assert main(["export", "--user", "ann", str(tmp_path / "last")]) == 0
    assert len((tmp_path / "last").read_bytes().splitlines()) == count()


def test_without_a_file_the_lines_go_to_a_pipe(ready, capsysbinary, tmp_path):
    """Standard output has the very bytes of the file, and the summary goes elsewhere."""
    lived(ready)
    assert main(["export", str(tmp_path / "e"), "--user", "ann", "--user", "bob"]) == 0
    capsysbinary.readouterr()
    assert main(["export", "--user", "ann", "--user", "bob"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == (tmp_path / "e").read_bytes()
    assert b"events written" in err
    assert main(["export", "--user", "ann", "--json"]) == 2
    assert b"name a FILE" in capsysbinary.readouterr().err


def test_a_bad_line_lets_nothing_of_its_file_in(ready, tmp_path, capsys):
    """A file of events is read whole before any of it is published."""
    publish(ready, 2)
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    assert result_of(capsys, "export", str(good), "--user", "ann")[0] == 0
    ids = f"{7:032x}"
    first = json.loads(good.read_text().splitlines()[0]) | {"id": ids}
    bad.write_text(json.dumps(first) + "\n{oops\n")
    later = first | {"id": f"{8:032x}", "v": 9}
    good.write_text(good.read_text() + json.dumps(later) + "\n")
    code, did = result_of(capsys, "ingest", str(bad), str(good))
    assert (code, did["new_events"], did["files"]) == (1, 0, 1)
    (line, unknown) = did["refused"]
    assert "bad.jsonl:2: not JSON" in line["why"]
    assert "does not know its type or version" in unknown["why"]
    assert ids not in {one.id for one in envelopes(ready)}
    code, did = result_of(capsys, "ingest", str(good), "--user", "eve")
    assert (code, did["refused"][0]["why"]) == (
        1,
        "its events name their user and agent; leave out --user and --agent",
    )


def test_without_redis_a_file_of_events_is_refused(
    make_settings, ready, tmp_path, capsys, monkeypatch
):
    """While nobody can say what is new, nothing is taken in, and the reason is told (G9)."""
    publish(ready, 1)
    file = tmp_path / "ann.jsonl"
    assert result_of(capsys, "export", str(file), "--user", "ann")[0] == 0
    monkeypatch.setenv("MEMORYBUS_URL", "redis://127.0.0.1:1")
    code, did = result_of(capsys, "ingest", str(file))
    assert (code, did["files"], did["level"], len(did["refused"])) == (1, 0, None, 1)


def test_an_interrupted_export_leaves_no_half_a_file(ready, tmp_path, capsys, monkeypatch):
    """Ctrl-C leaves what was there before, and nothing beside it."""
    publish(ready, 2)
    file = tmp_path / "ann.jsonl"
    file.write_text("before")
    monkeypatch.setattr(os, "fsync", _interrupting)
    assert main(["export", str(file), "--user", "ann"]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["ann.jsonl"]
    assert file.read_text() == "before"


def test_an_interrupted_ingest_goes_on_where_it_was(
    ready, elsewhere, tmp_path, capsys, monkeypatch
):
    """G2: what was published before Ctrl-C stays, and the next run adds the rest, each once."""
    publish(ready, 10)
    file = tmp_path / "ann.jsonl"
    assert result_of(capsys, "export", str(file), "--user", "ann")[1]["events"] == 11
    other = elsewhere()
    with monkeypatch.context() as patched:
        taken = iter(range(5))
        publish_one = MemoryBus.publish

        def interrupted(bus: MemoryBus, *args: Any, **more: Any) -> Any:
            if next(taken, None) is None:
                raise KeyboardInterrupt
            return publish_one(bus, *args, **more)

        patched.setattr(MemoryBus, "publish", interrupted)
        assert main(["ingest", str(file)]) == 130
    assert "the same command publishes the rest" in capsys.readouterr().err
    assert len(envelopes(other)) == 5
    assert result_of(capsys, "ingest", str(file))[1]["new_events"] == 6
    assert len(envelopes(other)) == 11


def _interrupting(_: int) -> None:
    raise KeyboardInterrupt
