"""The command line's manners: help, usage errors, clear failures, exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import platformdirs
import pytest
from memorybus.config.settings import FILE_NAME, Settings, load
from memorybus.errors import (
    ConfigError,
    LogUnavailable,
    MemoryBusError,
    MissingProvider,
)
from memorybus_console.cli import app, failures
from memorybus_console.cli.app import OK, main
from memorybus_console.cli.failures import FAILED, PIPE_CLOSED, USAGE
from memorybus_console.cli.options import parse_key_values

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


@pytest.mark.parametrize("group", ["events", "sessions", "provider", "dlq"])
@pytest.mark.slow(reason="runs the help of every command")
def test_a_group_explains_itself(group, capsys):
    """--help works for a group of commands, too."""
    assert main([group, "--help"]) == OK

    assert "Usage" in capsys.readouterr().out


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
        ["replay", "--provider", "builtin", "--into", "again"],
    ],
)
def test_without_redis_the_next_command_is_named(words, capfd):
    """A command that needs Redis names what starts it, on stderr, without a traceback."""
    assert main(words) == FAILED

    shown = capfd.readouterr()
    assert shown.err.startswith("error: ") or words[0] == "status"  # first what is spooled
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


@pytest.mark.parametrize(
    ("variable", "file", "words", "named"),
    [
        ("x", b"", ["status"], "did you mean 'url'"),
        ("", b"\xff\xfe", ["status"], "memorybus.toml"),
        ("", b"", ["events", "ls", "--type", "memorywriten"], "MemoryWritten"),
    ],
    ids=["an unknown setting", "a file that is no text", "a misspelt event type"],
)
def test_a_mistake_is_named_before_redis_is_asked(
    variable, file, words, named, monkeypatch, short_dir, capsys
):
    """What is written wrongly, in the settings or as a word, is a matter of usage."""
    if variable:
        monkeypatch.setenv("MEMORYBUS_URI", variable)
    (short_dir / "memorybus.toml").write_bytes(file)

    assert main(words) == USAGE
    assert named in capsys.readouterr().err


def test_a_word_after_the_options_is_no_option(capsys):
    """What stands behind ``--`` is meant literally: nobody asked for JSON."""
    assert main(["recall", "--", "--json"]) == FAILED

    assert capsys.readouterr().out == ""


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


@pytest.mark.parametrize("kind", [ConfigError, MissingProvider])
def test_wrong_settings_are_wrong_usage(kind, monkeypatch, capsys):
    """What a person has to write differently ends with 2, wherever it was found."""

    def refuses(words):
        raise kind("no such thing")

    monkeypatch.setattr(app, "build_app", lambda: refuses)

    assert main(["status"]) == USAGE
    assert capsys.readouterr().err == "error: no such thing\n"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            MemoryBusError("no [bold]session[/bold] \x1b[2J"),
            "error: no [bold]session[/bold] \\x1b[2J\n",
        ),
        (LogUnavailable("gone", "run: memorybus up"), "error: gone\nrun: memorybus up\n"),
    ],
)
def test_an_error_is_shown_harmlessly_with_its_remedy(error, shown, capsys):
    """A message may quote a user's text, which never steers the terminal."""
    failures.print_error(error)

    assert capsys.readouterr().err == shown


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


def test_settings_are_shown_with_their_origin(tmp_path, monkeypatch, capsys):
    """The command says which value holds and which file it read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memorybus.toml").write_text("batch = 7\n")
    assert main(["config", "show", "--json"]) == 0
    shown = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert shown["batch"] == {
        "name": "batch",
        "value": "7",
        "unit": "events",
        "origin": str(tmp_path / "memorybus.toml"),
        "meaning": "How many events a lane reads and commits at once.",
    }
    assert main(["config", "show"]) == 0
    said = capsys.readouterr()
    assert "batch" in said.out
    assert str(tmp_path / "memorybus.toml") in said.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.slow(reason="renders every command for a shell")
def test_shells_complete_the_commands(tmp_path, monkeypatch, shell):
    """The script that completes knows the commands."""
    monkeypatch.setenv("HOME", str(tmp_path))  # the script is named in the shell's start-up file
    script = tmp_path / "script"
    assert main(["completion", "--shell", shell, "--output", str(script)]) == 0
    assert "rebuild" in script.read_text()


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("a=1", 1),
        ("a=1.5", 1.5),
        ("a=true", True),
        ("a=[1, 2]", [1, 2]),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a='1'", "1"),
        ("a=inf", "inf"),
        ("a=-inf", "-inf"),
        ("a=nan", "nan"),
    ],
)
def test_a_value_is_what_toml_says_or_a_text(word, value):
    """A value that a record could not hold as it is, as `inf`, is not taken for a number."""
    assert parse_key_values([word]) == {"a": value}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_word_without_a_name_or_a_value_is_refused(word):
    """G10: the error says what was given and what it must look like."""
    with pytest.raises(ConfigError, match="must read NAME=VALUE"):
        parse_key_values([word])


@pytest.mark.parametrize("name", ["api_key", "TOKEN", "db_password", "credentials"])
def test_secrets_are_refused(name):
    """A secret is named by where it belongs, and is not repeated."""
    with pytest.raises(ConfigError, match="environment") as refused:
        parse_key_values([f"{name}=hush"])
    assert "hush" not in str(refused.value)


def run(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command by a shell that first does something else."""
    python = f"exec {sys.executable} -m memorybus {' '.join(words)}"
    line = f"{before}; {python}" if before else python
    around = {"PATH": "/usr/bin:/bin", "MEMORYBUS_DATA_DIR": str(cwd), **(env or {})}
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=cwd,
        env=around,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow(reason="processes with a surrounding of their own")
@pytest.mark.parametrize("columns", ["0", "1", "-5", "abc", "00", "19"])
@pytest.mark.parametrize("words", [("status",), ("status", "--help"), ("--help",)], ids=" ".join)
def test_any_width_will_do(short_dir, columns, words):
    """Whatever COLUMNS and LINES say, a command ends, and not by a mistake of ours."""
    done = run(*words, cwd=short_dir, env={"COLUMNS": columns, "LINES": columns})
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="processes with a surrounding of their own")
@pytest.mark.parametrize(
    "env",
    [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"LANG": "C"}, {}],
    ids=str,
)
def test_a_terminal_of_another_encoding_is_shown_escapes(short_dir, env):
    """What an encoding lacks is escaped; without TERM and HOME a command works, too."""
    done = run("doctor", cwd=short_dir, env=env)
    assert "python" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="processes with a surrounding of their own")
@pytest.mark.parametrize("words", [("status",), ("check",), ("worker",)], ids=" ".join)
def test_a_deleted_working_directory_is_named(short_dir, words):
    """Where no directory is, none can have settings: that is said, in one line."""
    before = "mkdir gone; cd gone; rmdir ../gone"
    done = run(*words, cwd=short_dir, before=before)
    told = (done.stdout + done.stderr).strip()
    assert done.returncode in (2, 3)
    assert "the working directory was deleted" in told
    assert "Traceback" not in told


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    """No directory named ~ is made."""
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda _: "~/.local/share/memorybus")
    with pytest.raises(ConfigError, match="MEMORYBUS_DATA_DIR"):
        Settings()


def test_a_byte_order_mark_is_read_over(tmp_path):
    """A file that an editor begins with a BOM is a file of settings."""
    file = tmp_path / FILE_NAME
    file.write_bytes(b'\xef\xbb\xbfnamespace = "here"\n')
    assert load(environ={}, file=file).namespace == "here"


def test_a_file_that_cannot_be_read_is_named_once(tmp_path):
    """A directory in its place, and another encoding, are named with the file."""
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(ConfigError) as caught:
        load(environ={}, directory=tmp_path)
    assert str(caught.value) == f"{tmp_path / FILE_NAME} cannot be read: Is a directory"
    other = tmp_path / "other.toml"
    other.write_bytes('namespace = "x"\n'.encode("utf-16"))
    with pytest.raises(ConfigError, match="save it as UTF-8"):
        load(environ={}, file=other)
