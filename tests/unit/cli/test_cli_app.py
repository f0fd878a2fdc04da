"""The command line's manners: help, usage errors, clear failures, exit codes."""

import json
import os
import subprocess
import sys

import pytest
from memorybus.errors import ConfigError, LogUnavailable, MemoryBusError, MissingProvider
from memorybus_console.cli import app, failures
from memorybus_console.cli.app import OK, main
from memorybus_console.cli.failures import FAILED, PIPE_CLOSED, USAGE

COMMANDS = (
    "demo",
    "up",
    "worker",
    "ingest",
    "recall",
    "status",
    "events",
    "sessions",
    "provider",
    "dlq",
    "replay",
    "doctor",
)


@pytest.fixture(autouse=True)
def _own_place(monkeypatch, short_dir):
    """No configuration of the machine, no Redis, a data directory of the test's own."""
    for name in list(os.environ):
        if name.startswith("MEMORYBUS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORYBUS_DATA_DIR", str(short_dir))
    monkeypatch.chdir(short_dir)


def test_alone_it_shows_help(capsys):
    """Without a command every command is listed."""
    assert main([]) == OK

    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow(reason="runs the help of every command")
def test_every_command_explains_itself(command, capsys):
    """--help works everywhere and fails nowhere."""
    assert main([command, "--help"]) == OK

    assert "Usage" in capsys.readouterr().out


COMPLETE = (
    *(["demo"], ["up"], ["worker"], ["ingest"], ["recall"], ["status"], ["replay"], ["doctor"]),
    *(["events", "ls"], ["events", "tail"], ["sessions", "tree"]),
    *(["provider", "ls"], ["provider", "move"], ["provider", "setup"], ["provider", "test"]),
    *(["dlq", name] for name in ("ls", "show", "retry", "edit", "discard")),
)


@pytest.mark.parametrize("words", COMPLETE, ids=" ".join)
@pytest.mark.slow(reason="runs the help of every command")
def test_every_command_gives_an_example(words, capsys):
    """The help of a command shows it in use."""
    assert main([*words, "--help"]) == OK

    shown = capsys.readouterr().out
    assert "For example" in shown
    assert f"memorybus {' '.join(words)}" in shown.partition("For example")[2]


@pytest.mark.parametrize("command", ["up", "worker"])
def test_a_command_without_a_result_says_what_json_prints(command, capsys):
    """What goes on until it is stopped prints readiness, not a result."""
    assert main([command, "--help"]) == OK

    shown = capsys.readouterr().out
    assert "one JSON line" in " ".join(shown.replace("│", "").split())
    assert "Print the result" not in shown


def test_the_version_is_told(capsys):
    """--version prints the installed version."""
    assert main(["--version"]) == OK

    assert capsys.readouterr().out.startswith("memorybus 0.")


@pytest.mark.parametrize(
    "words",
    [
        ["fly"],
        ["status", "--colour"],
        ["recall"],
        ["replay", "--provider", "builtin"],
        ["events", "ls", "--limit", "many"],
        ["events", "ls", "--limit", "0"],
        ["events", "ls", "--limit", "-3"],
        ["events", "ls", "--type", "Foo"],
        ["events", "tail", "--limit", "-1"],
        ["ingest"],
        ["recall", ""],
        ["recall", " \t"],
        ["recall", "x", "--budget", "0"],
        ["recall", "x", "--budget", "-5"],
        ["recall", "x", "--timeout", "-1"],
        ["recall", "x", "--timeout", "nan"],
        ["recall", "x", "--provider", ","],
        ["dlq", "ls", "--group", "colour"],
        ["dlq", "ls", "--limit", "0"],
        ["dlq", "show"],
        ["dlq", "retry", "--all", "--wait", "0"],
        ["dlq", "discard", "--all"],
        ["dlq", "discard", "--all", "--reason", " "],
        ["dlq", "edit", "0198", "--reason", "x"],
        ["status", "--url", "foo"],
        ["status", "--url", "http://x"],
        ["status", "--namespace", "{a}"],
        ["up", "--jobs", "-1"],
        ["up", "--providers", ","],
        ["replay", "--provider", "builtin", "--into", "../x"],
    ],
)
def test_wrong_usage_is_2(words, capsys):
    """A command that was not understood says so on stderr and ends with 2."""
    assert main(words) == USAGE

    shown = capsys.readouterr()
    assert shown.err.strip()
    assert not shown.out.strip()


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--json"],
        ["events", "ls"],
        ["events", "tail"],
        ["sessions", "tree", "--json"],
        ["recall", "anything", "--json"],
    ],
)
def test_without_redis_the_next_command_is_named(words, capsys):
    """A command that needs Redis names what starts it, on stderr, without a traceback."""
    assert main(words) == FAILED

    shown = capsys.readouterr()
    assert "error: " in shown.err
    assert "memorybus up" in shown.err
    assert "Traceback" not in shown.err
    assert bool(shown.out) == ("--json" in words)


WITHOUT_REDIS = (
    ["status"],
    ["status", "--watch"],
    ["recall", "anything"],
    ["events", "ls"],
    ["events", "tail"],
    ["sessions", "tree"],
    ["provider", "ls"],
    ["provider", "pause", "builtin", "--reason", "x"],
    ["dlq", "ls"],
    ["dlq", "show", "0198"],
    ["dlq", "retry", "--all"],
    ["tools", "ls"],
    ["archive", "ls"],
    ["archive", "run"],
    ["replay", "ls"],
    ["replay", "--provider", "builtin", "--into", "again"],
    ["rebuild", "ls"],
    ["rebuild", "builtin"],
    ["verify", "builtin"],
)


@pytest.mark.parametrize("words", WITHOUT_REDIS, ids=" ".join)
@pytest.mark.slow(reason="every command against no Redis")
def test_a_program_is_told_what_failed(words, capfd):
    """With --json a failure is one object on one line of stdout: kind, what and why, what next."""
    assert main([*words, "--json"]) == FAILED

    shown = capfd.readouterr()
    told = json.loads(shown.out)
    assert shown.out.count("\n") == 1
    assert told["error"] == "LogUnavailable"
    assert "redis.sock" in told["message"] or "mb:" in told["message"]
    assert "memorybus up" in told["next"]


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["status", "--colour"], "UnknownOptionError", "--colour"),
        (["dlq", "discard", "--all"], "MissingArgumentError", "--reason"),
        (["status", "--namespace", "{a}"], "ConfigError", "namespace"),
        (["dlq", "edit", "0198", "--file", "none.json", "--reason", "x"], "File", "none.json"),
    ],
)
def test_a_program_is_told_what_it_wrote_wrongly(words, kind, said, capsys):
    """With --json wrong usage is an object, too, and people still read the reason on stderr."""
    code = main([*words, "--json"])

    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert told["error"].startswith(kind)
    assert said in told["message"]
    assert said in shown.err
    assert code == (FAILED if kind == "File" else USAGE)


def test_a_word_after_the_options_is_no_option(capsys):
    """What stands behind ``--`` is meant literally: nobody asked for JSON."""
    assert main(["recall", "--", "--json"]) == FAILED

    assert capsys.readouterr().out == ""


def test_an_unknown_setting_is_named(monkeypatch, capsys):
    """A misspelt variable is an error that names the nearest known one."""
    monkeypatch.setenv("MEMORYBUS_URI", "x")

    assert main(["status"]) == USAGE
    assert "did you mean 'url'" in capsys.readouterr().err


def test_a_misspelt_event_type_is_told_the_nearest(capsys):
    """An event type is checked before the log is read."""
    assert main(["events", "ls", "--type", "memorywriten"]) == USAGE

    assert "MemoryWritten" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["recall", "x"], ["status"], ["events", "ls"]])
def test_who_only_reads_opens_no_spool(words, short_dir, capsys):
    """A command that publishes nothing neither makes a spool nor speaks of waiting events."""
    assert main(words) == FAILED

    assert "events wait" not in capsys.readouterr().err
    assert list(short_dir.rglob("*.db")) == []


def test_nothing_is_claimed_of_events_that_were_not_published(short_dir, capsys):
    """An ingest without a readable file names the file, and no spool."""
    assert main(["ingest", "nothing.jsonl", "--json"]) == FAILED

    shown = capsys.readouterr()
    assert "nothing.jsonl: No such file" in shown.err
    assert "spooled" not in shown.err
    assert json.loads(shown.out)["level"] is None
    assert list(short_dir.rglob("*.db")) == []


def test_a_replay_without_redis_names_the_remedy(capfd):
    """What stopped the child is told as its parent's own error, in prose."""
    assert main(["replay", "--provider", "builtin", "--into", "again"]) == FAILED

    shown = capfd.readouterr()
    assert shown.err.startswith("error: ")
    assert "memorybus up" in shown.err
    assert shown.out == ""


def test_a_file_that_is_no_text_is_named(short_dir, capsys):
    """Settings that cannot be read are a matter of usage, with the file's name."""
    (short_dir / "memorybus.toml").write_bytes(b"\xff\xfe")

    assert main(["status"]) == USAGE
    assert "memorybus.toml" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [ConfigError, MissingProvider])
def test_wrong_settings_are_wrong_usage(kind, monkeypatch, capsys):
    """What a person has to write differently ends with 2, wherever it was found."""

    def refuses(words):
        raise kind("no such thing")

    monkeypatch.setattr(app, "build_app", lambda: refuses)

    assert main(["status"]) == USAGE
    assert capsys.readouterr().err == "error: no such thing\n"


def test_hostile_errors_are_made_harmless(capsys):
    """An error message may quote a user's text; it never steers the terminal."""
    failures.print_error(MemoryBusError("no [bold]session[/bold] \x1b[2J"))

    assert capsys.readouterr().err == "error: no [bold]session[/bold] \\x1b[2J\n"


def test_advice_follows_the_kind_of_error(capsys):
    """An unreachable log shows the remedy that its error brings."""
    failures.print_error(LogUnavailable("gone", "run: memorybus up"))

    assert capsys.readouterr().err == "error: gone\nrun: memorybus up\n"


def test_an_interrupt_is_130(monkeypatch):
    """Ctrl-C ends any command with 130 and without a traceback."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "build_app", lambda: lambda words: interrupted())

    assert main(["status"]) == 130


def shell(line, short_dir):
    """Run the command line by a shell, for its redirections."""
    program = f"{sys.executable} -m memorybus_console.cli"
    return subprocess.run(
        ["/bin/sh", "-c", line.format(program)],
        cwd=short_dir,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("words", ["--help", "ingest nothing.jsonl --json"])
@pytest.mark.slow(reason="starts processes")
def test_a_full_disk_is_told(words, short_dir):
    """Output that cannot be written is one error line and a failure."""
    done = shell("{} " + words + " > /dev/full", short_dir)

    assert done.returncode == FAILED
    assert done.stderr.endswith("error: standard output: No space left on device\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("closed", "said"), [(">&-", "error: standard output is closed\n"), (">&- 2>&-", "")]
)
@pytest.mark.slow(reason="starts processes")
def test_a_closed_output_is_told(closed, said, short_dir):
    """Without standard output there is nothing to do, and no traceback."""
    done = shell("{} --version " + closed, short_dir)

    assert (done.returncode, done.stderr) == (FAILED, said)


@pytest.mark.slow(reason="starts processes")
def test_the_start_is_light():
    """The command line loads Redis and the rest only for the command that needs them."""
    program = (
        "import json, sys; from memorybus_console.cli.app import build_app; build_app(); "
        "print(json.dumps([*sys.modules]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )

    loaded = set(json.loads(told.stdout))
    assert "cyclopts" in loaded
    assert loaded.isdisjoint(
        {
            "redis",
            "rq",
            "sqlite3",
            "asyncio",
            "memorybus.agent.client",
            "rich.markdown",
        }
    )


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
@pytest.mark.slow(reason="starts processes")
def test_a_closed_pipe_is_quiet(words, short_dir):
    """A reader that went away, as `head` does, causes no complaint."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memorybus_console.cli", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd=short_dir,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (PIPE_CLOSED, b"")
