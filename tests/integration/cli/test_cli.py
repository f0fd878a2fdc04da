"""The command line against a real Redis and real workers, as people run it."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from helpers.processes.commands import Ran, run_command
from helpers.processes.processes import Child, Spawn
from helpers.processes.waiting import wait_until
from helpers.redis.log import Log
from helpers.stories.described import troubles
from memorybus.agent.client import MemoryBus
from memorybus.config.settings import Settings, to_environ
from memorybus.health.monitor import read_status
from memorybus_console.operations.doctor import instances
from memorybus_console.operations.local_server import is_listening

pytestmark = pytest.mark.timeout(120)

CLI = ("-m", "memorybus_console.cli")
STARTING = ("demo", "up", "worker")
"""Commands that start processes: run as one, as people run them. Others run within the test."""

Done = subprocess.CompletedProcess[str] | Ran
Run = Callable[..., Done]

FERRY = [
    {"role": "user", "content": "My daughter Ilse collects sea glass on the north beach."},
    {"role": "assistant", "content": "Green sea glass is common, cobalt is the rare one."},
    {"role": "user", "content": "The ferry timetable changes on 3 October."},
    {"role": "assistant", "content": "Noted: from 3 October the first ferry leaves at 06:40."},
]

SAMPLE = {
    "speaker_a": "Ann",
    "speaker_b": "Bo",
    "session_1": [
        {"speaker": "Ann", "text": "I planted twelve quince trees behind the mill."},
        {"speaker": "Bo", "text": "Quince jelly for everyone, then!"},
    ],
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [{"speaker": "Ann", "text": "Three of them have blossomed."}],
    "session_2_date_time": "2:10 pm on 9 April, 2024",
}


def host(data_dir: Path) -> dict[str, str]:
    """Return the environment of a host with nothing but a data directory."""
    return to_environ(Settings(data_dir=data_dir), {"TMPDIR": str(data_dir)})


@pytest.fixture(name="env")
def _env(short_dir: Path) -> dict[str, str]:
    """Return the environment of a host of this test's own."""
    return host(short_dir)


@pytest.fixture(name="run")
def _run(env: dict[str, str], spawn: Spawn) -> Run:
    """Run one command of the command line to its end."""
    return runner(env)


def runner(env: dict[str, str]) -> Run:
    """Return what runs a command on a host."""

    def run(
        *words: str | Path, timeout: float = 60.0, providers: str = "", configured: bool = True
    ) -> Done:
        more = {"MEMORYBUS_PROVIDERS": providers} if providers else {}
        ours = env if configured else {"TMPDIR": env["TMPDIR"]}
        told, place = ours | {"PATH": "/usr/bin:/bin"} | more, Path(env["MEMORYBUS_DATA_DIR"])
        if words[0] not in STARTING:
            return run_command(told, *map(str, words), alone=True, directory=place)
        return subprocess.run(
            [sys.executable, *CLI, *map(str, words)],
            env=told,
            cwd=place,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(name="up")
def _up(env: dict[str, str], spawn: Spawn) -> Iterator[Child]:
    """Run `memorybus up` until the end of the test."""
    with is_up(spawn, env) as child:
        yield child


@contextmanager
def is_up(spawn: Spawn, env: dict[str, str]) -> Iterator[Child]:
    """Run `memorybus up` while the block runs."""
    child = spawn(*CLI, "up", "--json", env=env)
    child.wait_output('"ready"', timeout=30)
    yield child
    if child.alive:
        child.send(signal.SIGINT)
        child.wait()


class Shared(NamedTuple):
    """A running bus with two files in it: tests that only look share it.

    Attributes:
        files: what was ingested, a chat as `ana` and conversations of `Ann` and `Bo`.
        reports: what the ingest of each printed.
    """

    env: dict[str, str]
    run: Run
    up: Child
    files: list[tuple[str | Path, ...]]
    reports: list[dict]


@pytest.fixture(name="shared", scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Ingest both files into a bus that runs until all tests of this module are over."""
    data_dir = Path(tempfile.mkdtemp(prefix="mb-"))
    place, env = tmp_path_factory.mktemp("shared"), host(data_dir)
    files: list[tuple[str | Path, ...]] = [
        (write(place / "chat.jsonl", *FERRY), "--user", "ana"),
        (write(place / "seven.json", SAMPLE),),
    ]
    spawn, run = Spawn(place, uuid.uuid4().hex, data_dir), runner(env)
    try:
        with is_up(spawn, env) as child:
            reports = [result(run("ingest", *words, "--json")) for words in files]
            caught_up(env)
            yield Shared(env, run, child, files, reports)
    finally:
        spawn.end_all()
        shutil.rmtree(data_dir, ignore_errors=True)


def result(done: Done) -> dict:
    """Return a command's JSON; fail with what it said instead."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ends_whole(child: Child, how: signal.Signals, spawn: Spawn, data_dir: Path) -> bool:
    """Say whether a signal ends `up`, its server, its workers and their jobs, with exit code 0."""
    socket = data_dir / "redis" / "redis.sock"
    assert is_listening(socket)
    child.send(how)
    assert child.wait() == 0
    wait_until(lambda: spawn.descendants() == [], "no process is left")
    return not is_listening(socket)


def told(child: Child) -> list[dict]:
    """Return the lines of JSON that a child has written, whatever it logged between and behind."""
    lines = child.output().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


def caught_up(env: dict[str, str]) -> None:
    """Wait until no provider has a backlog; looking starts no process."""
    settings = Settings(data_dir=Path(env["MEMORYBUS_DATA_DIR"]))

    def done() -> bool:
        return not any(provider.backlog for provider in read_status(settings).providers)

    wait_until(done, "every lane has applied everything", timeout=30)


def write(path: Path, *lines: object) -> Path:
    """Write JSON lines."""
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def test_the_demo_prints_one_object_and_leaves_nothing(run, spawn, short_dir):
    """Every published event is applied by both providers and the question is answered (G3, G4)."""
    done = run("demo", "--json")
    shown = result(done)

    assert not list(troubles(("demo",), done.stdout))
    assert "lanes taken" not in done.stderr  # its worker's log is not what the demo shows
    assert shown["published"] >= 20
    assert shown["applied"] == {"builtin": shown["published"], "holographic": shown["published"]}
    assert "calcium sulfonate" in shown["recalled"]
    assert "3 December" in shown["recalled"]
    assert list(short_dir.glob("memorybus-*")) == []
    assert spawn.descendants() == []


def test_an_interrupted_demo_leaves_nothing(spawn, env, short_dir):
    """Ctrl-C in the middle ends with 130, without a process or a directory left behind."""
    child = spawn(*CLI, "demo", env=env)
    child.wait_output("turn", timeout=30)

    child.send(signal.SIGINT)

    assert child.wait() == 130
    assert "Traceback" not in child.output()
    assert list(short_dir.glob("memorybus-*")) == []
    assert spawn.descendants() == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="signals that wait: Linux")
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_up_told_twice_says_so(how, code, spawn, env, short_dir):
    """The second signal means at once: nothing is left either, and the exit code names it."""
    child = spawn(*CLI, "up", "--json", env=env)
    child.wait_output('"ready"', timeout=30)

    worker = psutil.Process(told(child)[-1]["worker_pid"])
    worker.suspend()  # so that the first word takes its time
    wait_until(lambda: _stands(worker), "all threads of the worker stand")

    child.send(how)
    wait_until(lambda: _is_told(worker), "the worker is told to end")
    child.send(how)
    worker.resume()

    assert child.wait() == code, child.output()
    assert not is_listening(short_dir / "redis" / "redis.sock")
    wait_until(lambda: spawn.descendants() == [], "no process is left")


def _stands(process: psutil.Process) -> bool:
    """Say whether all threads of a process are stopped: until then one may still take a signal."""
    states = Path(f"/proc/{process.pid}/task").glob("*/stat")
    return all(one.read_text().rpartition(")")[2].split()[0] == "T" for one in states)


def _is_told(process: psutil.Process) -> bool:
    """Say whether SIGTERM waits for a process that is suspended."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (pending,) = (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd"))
    return bool(int(pending, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_second_up_is_refused(shared):
    """One data directory has one `up`; the refusal says what to do."""
    refused = shared.run("up")

    assert refused.returncode == 1
    assert "stop it first" in refused.stderr
    assert shared.up.alive


def test_the_same_file_twice_adds_nothing(shared):
    """Ingest is idempotent: the second time the log does not grow (G2)."""
    assert [(report["new_events"], report["level"]) for report in shared.reports] == [
        (3, "logged"),
        (4, "logged"),
    ]
    before = result(shared.run("status", "--json"))["log"]["published"]
    assert before >= 3 + 4  # a canary of another test may be there, too
    for words, first in zip(shared.files, shared.reports, strict=True):
        second = result(shared.run("ingest", *words, "--json"))
        assert (second["new_events"], second["turns"]) == (0, first["turns"])
    status = result(shared.run("status", "--json"))
    assert status["log"]["published"] == before
    assert {(p["applied"], p["backlog"]) for p in status["providers"]} == {(before, 0)}
    assert status["disk"].keys() == {"free", "aof"}


def test_what_was_ingested_is_recalled_within_its_scope(shared):
    """Recall finds a person's memories verbatim, and never another person's."""
    run = shared.run
    ana = result(run("recall", "When does the ferry timetable change?", "--user", "ana", "--json"))
    ann = result(run("recall", "What did I plant? Quince trees?", "--user", "Ann", "--json"))
    nobody = result(run("recall", "quince trees", "--user", "ana", "--json"))

    assert set(ana) == {"text", "results"}
    found = [one for one in ana["results"] if "The ferry timetable changes" in one["text"]]
    assert {(one["provider"], one["session"]) for one in found} == {("holographic", "chat")}
    whence = {"provider", "text", "session", "at", "source", "truncated", "speaker", "event"}
    told = {"score", "matched", "meaning", "parts", "until", "before"}
    assert set(found[0]) == whence | told
    assert any(
        "twelve quince trees" in one["text"] and one["at"] == "2023-05-08T13:56:00.000Z"
        for one in ann["results"]
    )
    assert not any("quince" in one["text"] for one in nobody["results"])


def test_events_and_sessions_can_be_looked_at(shared):
    """The log lists what was ingested, newest last, and the lineage as a tree."""
    run = shared.run
    listed = result(run("events", "ls", "--json"))
    events = [event for event in listed if event["session"]["id"].startswith("seven:")]
    chosen = ("--session", "seven:session_2", "--type", "turncompleted", "--limit", "1")
    turns = result(run("events", "ls", *chosen, "--json"))
    sessions = result(run("sessions", "tree", "seven:session_2", "--json"))

    assert [event["type"] for event in events].count("TurnCompleted") == 2
    assert [turn["event"]["user"] for turn in turns] == ["Three of them have blossomed."]
    assert {"seven:session_2"} <= {one["session"] for one in sessions}
    assert run("sessions", "tree", "nobody").returncode == 1


def test_the_doctor_hears_the_canary_and_nobody_else_does(up, run, env):
    """On a healthy system every check passes; the canary leaves no memory, and is shown on demand.

    What a check-up leaves in the log is shown with --all, or by name, and not otherwise.
    """
    report = result(run("doctor", "--deep", "--json"))

    assert report["ok"] is True
    names = [check["name"] for check in report["checks"]]
    assert {"redis", "eviction policy", "durability", "spool", "worker", "canary"} <= set(names)
    caught_up(env)
    asked = ("What does the canary sing?", "--agent", "doctor", "--user", "doctor")
    assert result(run("recall", *asked, "--json"))["results"] == []
    plain = [result(run(*words, "--json")) for words in (("events", "ls"), ("sessions", "tree"))]
    assert plain == [[], []]
    events = result(run("events", "ls", "--all", "--json"))
    assert {event["scope"]["agent"] for event in events} == {"doctor"}
    (session,) = result(run("sessions", "tree", "--all", "--json"))
    assert session["session"].startswith("doctor:")
    assert run("sessions", "tree", session["session"]).returncode == 0


def test_a_provider_that_nobody_serves_is_told(shared):
    """A name in the settings that the running worker does not know fails the check-up."""
    sick = shared.run("doctor", "--json", providers="builtin,holografic")

    assert sick.returncode == 1
    failed = [c for c in json.loads(sick.stdout)["checks"] if not c["ok"]]
    assert [check["name"] for check in failed] == ["providers"]
    assert "holografic" in failed[0]["found"]
    assert "restart the worker" in failed[0]["fix"]


@pytest.mark.parametrize(
    ("words", "said", "kind"),
    [((), {}, "text"), (("--log", "json"), {}, "json"), ((), {"MEMORYBUS_LOG": "json"}, "json")],
    ids=["text", "option", "environment"],
)
def test_a_worker_without_redis_names_the_remedy(words, said, kind, spawn, env):
    """A worker waits for Redis, and says in the form asked for what would start it."""
    child = spawn(*CLI, "worker", *words, env=env | said)
    child.wait_output("waiting for Redis")
    child.wait_output("memorybus up")

    assert child.terminate() == 0
    assert child.output().startswith("{") is (kind == "json")


def test_up_logs_as_the_settings_file_says(spawn, env, short_dir):
    """Form and level of log lines come from the file, also for workers; Ctrl-C ends all of them."""
    said = {name: env[name] for name in ("MEMORYBUS_DATA_DIR", "TMPDIR")}
    (short_dir / "memorybus.toml").write_text('log = "json"\nlog_level = "debug"\n')
    named = {"MEMORYBUS_CONFIG": str(short_dir / "memorybus.toml")}
    child = spawn(*CLI, "up", "--json", env=said | named)
    child.wait_output('"ready"', timeout=30)

    assert ends_whole(child, signal.SIGINT, spawn, short_dir)
    lines = [json.loads(line) for line in child.output().splitlines() if line.startswith("{")]
    assert any("lanes taken" in line.get("event", "") for line in lines)
    assert not [line for line in child.output().splitlines() if "[info" in line]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("worker", "--providers", "holografic"), "did you mean 'holographic'?"),
        (("up", "--providers", "holografic"), "did you mean 'holographic'?"),
        (("worker", "--url", "http://x"), "redis://"),
    ],
)
def test_a_wrong_setting_ends_at_once(words, said, run):
    """What another start cannot heal is one line of prose and exit code 2, not a loop."""
    done = run(*words)

    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stdout == ""


def test_up_ends_on_a_redis_that_may_drop_events(run, make_redis):
    """A worker that refuses its Redis ends `up` with the worker's own words (G1)."""
    url = make_redis(maxmemory_policy="allkeys-lru").url

    done = run("up", "--url", url)

    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "noeviction" in done.stderr


def test_a_status_is_watched_through_a_pipe(shared):
    """Without a terminal each look is a block or a line of its own; a closed pipe ends it."""
    lines = _watched(shared.env, 3, "--json")
    blocks = _watched(shared.env, 30)

    assert all("providers" in json.loads(line) for line in lines)
    assert len([line for line in blocks if line.startswith(("Redis ", "Valkey "))]) >= 2


def _watched(env: dict[str, str], count: int, *words: str) -> list[str]:
    """Return the first lines of a watch, whose pipe is then closed."""
    watch = subprocess.Popen(
        [sys.executable, *CLI, "status", "--watch", *words],
        env=env | {"PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = [watch.stdout.readline() for _ in range(count)]
        watch.stdout.close()
        assert (watch.wait(20), watch.stderr.read()) == (141, "")
    finally:
        watch.kill()
        watch.wait()
        watch.stderr.close()
    return lines


def test_recall_is_judged_on_questions_of_ones_own(shared, tmp_path):
    """A file of questions is asked, each for its person; what was expected and came is counted."""
    run = shared.run
    expected = FERRY[2]["content"]
    asked = {"question": "When does the ferry timetable change?", "expected": [expected]}
    file = write(
        tmp_path / "questions.jsonl",
        asked | {"user": "ana"},
        asked | {"user": "bo"},
        {"question": "Who owns the lighthouse?", "user": "bo"},
    )

    judged = result(run("recall", "--evaluate", file, "--json"))
    shown = run("recall", "--evaluate", file, "--user", "ana")

    assert (judged["questions"], judged["found"]) == (3, 0.5)
    assert judged["characters_for_nothing"] == 0
    assert [one["missing"] for one in judged["answers"]] == [[], [expected], []]
    assert "50% of what was expected" in shown.stdout
    assert run("recall", "what?", "--evaluate", file).returncode == 2


def test_an_event_is_shown_by_its_id(shared):
    """One event is found by its id, whole, as people and as programs read it; no other is."""
    run = shared.run
    listed = result(run("events", "ls", "--session", "chat", "--json"))[-1]

    shown = run("events", "get", listed["id"])

    whole = result(run("events", "get", listed["id"].upper(), "--json"))
    assert whole | listed == whole
    assert f"event      {listed['id']}" in shown.stdout
    assert "The ferry timetable" in shown.stdout
    missing = run("events", "get", "0" * 32)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "no event 0000" in missing.stderr
    assert run("events", "get", "0198").returncode == 2


def test_a_budget_too_small_is_not_nothing(shared):
    """What is remembered and does not fit differs from what is not; then others are suggested."""
    run = shared.run
    small = run("recall", "ferry timetable", "--user", "ana", "--budget", "5")
    nothing = run("recall", "xylophone", "--user", "ben", "--budget", "5")

    assert "too small" in small.stderr
    assert "nothing is remembered" in nothing.stderr
    assert "memorybus recall xylophone --agent default --user ana --workspace" in nothing.stderr
    assert (small.returncode, nothing.returncode) == (0, 0)


def test_a_session_recalls_for_its_own_people(shared):
    """Asked as a session, only its agent's and user's memories come; nobody's is an error."""
    run = shared.run
    own = result(run("recall", "ferry or quince?", "--session", "chat", "--json"))
    unknown = run("recall", "ferry", "--session", "nosuch")

    assert {one["session"] for one in own["results"]} == {"chat"}
    assert unknown.returncode == 1
    assert "no session 'nosuch'" in unknown.stderr


def test_an_unknown_provider_is_told_the_nearest(shared):
    """A recall from a provider that nobody knows is wrong usage."""
    done = shared.run("recall", "x", "--provider", "holografic")

    assert done.returncode == 2
    assert "did you mean 'holographic'" in done.stderr


def test_a_foreign_key_is_named(run, make_redis):
    """What stands in a partition's place is told by status and doctor alike (G10)."""
    server = make_redis()
    client = server.client()
    client.set("mb:{p03}:log", "hello")

    seen = run("status", "--url", server.url)
    sick = run("doctor", "--url", server.url, "--json")

    client.close()
    assert "mb:{p03}:log" in seen.stderr
    failed = {c["name"]: c for c in json.loads(sick.stdout)["checks"] if not c["ok"]}
    assert "mb:{p03}:log" in failed["log"]["found"]
    assert "not tried" in failed["canary"]["found"]


def test_data_loss_is_shown_and_fails_the_check_up(run, make_redis, monkeypatch):
    """A stream that somebody trimmed is named by status and doctor, with what to do (G7)."""
    monkeypatch.setattr(instances, "PASSED_WITHIN", 0.5)  # no worker runs here
    server = make_redis(appendonly="yes")
    log = Log(Settings(url=server.url))
    log.append(10)
    log.client.xtrim(log.key, maxlen=4, approximate=False)
    log.client.close()

    seen = run("status", "--url", server.url)
    status = result(run("status", "--url", server.url, "--json"))
    sick = run("doctor", "--url", server.url, "--json")

    gone = "partition p01: events 1 to 6 are gone"
    assert seen.stdout.startswith(f"DATA LOSS: {gone}\n    → find who trims")
    assert status["continuity"]["gaps"] == [
        {"partition": 1, "first": 1, "last": 6, "missing": 6, "record": "", "found_at": None}
    ]
    checks = {check["name"]: check for check in json.loads(sick.stdout)["checks"]}
    assert sick.returncode == 1
    assert (checks["continuity"]["ok"], checks["continuity"]["found"]) == (False, gone)
    assert checks["archive"]["found"] == "nothing is trimmed: no worker archives"


def test_without_redis_ingest_refuses_and_the_doctor_says_why(run, short_dir, tmp_path):
    """G2: what cannot be compared with the history is not published; both name the remedy."""
    chat = write(tmp_path / "chat.jsonl", *FERRY)
    done = run("ingest", chat, "--json")
    sick = run("doctor", "--json")

    report = json.loads(done.stdout)
    assert (done.returncode, report["level"], report["turns"]) == (1, None, 0)
    assert [refusal["what"] for refusal in report["refused"]] == [str(chat)]
    assert "memorybus up" in done.stderr
    assert list(short_dir.rglob("*.db")) == []
    assert sick.returncode == 1
    failed = {c["name"]: c["fix"] for c in json.loads(sick.stdout)["checks"] if not c["ok"]}
    assert {"redis", "worker", "canary"} <= set(failed)
    assert set(failed.values()) == {"run: memorybus up"}


def test_a_forgotten_person_s_turns_stay_out_when_redis_is_away(run, env, spawn, tmp_path):
    """G2: a file that is ingested while Redis is away brings back nothing that was forgotten."""
    chat = write(tmp_path / "chat.jsonl", *FERRY)
    up = spawn(*CLI, "up", "--json", env=env)
    up.wait_output('"ready"', timeout=30)
    result(run("ingest", chat, "--user", "ilse", "--json"))
    caught_up(env)
    run("forget", "--user", "ilse", "--reason", "asked", "--yes")
    assert "Ilse" not in run("events", "ls", "--json").stdout
    up.send(signal.SIGINT)
    up.wait()

    assert json.loads(run("ingest", chat, "--user", "ilse", "--json").stdout)["turns"] == 0

    again = spawn(*CLI, "up", "--json", env=env)
    again.wait_output('"ready"', timeout=30)
    caught_up(env)
    assert "Ilse" not in run("events", "ls", "--json").stdout


def test_an_up_sends_what_is_spooled_replaces_what_dies_and_stops_whole(env, spawn, short_dir):
    """G1: events of before are applied, a killed worker is replaced and named, SIGTERM ends all."""
    settings = Settings(data_dir=Path(env["MEMORYBUS_DATA_DIR"]))
    with MemoryBus.connect(settings) as bus:
        session = bus.session("ferry")
        for user, assistant in zip(FERRY[::2], FERRY[1::2], strict=True):
            receipt = session.turn_completed(user["content"], assistant["content"])
    assert receipt.level == "spooled"

    child = spawn(*CLI, "up", "--json", env=env)
    child.wait_output('"ready"', timeout=30)

    def arrived() -> bool:
        return all(one.applied == 3 for one in read_status(settings).providers)

    wait_until(arrived, "both providers have applied the spooled events", timeout=30)

    first = told(child)[0]["worker_pid"]
    psutil.Process(first).kill()
    child.wait_output("another starts in")
    wait_until(lambda: told(child)[-1]["worker_pid"] != first, "another worker is ready", 30)
    assert ends_whole(child, signal.SIGTERM, spawn, short_dir)
