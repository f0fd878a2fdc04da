"""Commands of ``memorybus`` run within the test: a Python for each costs more than it shows."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
from memorybus_console.cli.app import main


class Ran(NamedTuple):
    """What a command did, by the names that a process has for it.

    Attributes:
        returncode: its exit code.
        output: its standard output and error, in the order written.
        stdout: its standard output.
        stderr: its standard error.
    """

    returncode: int
    output: str
    stdout: str
    stderr: str


class _Pipe(io.RawIOBase):
    """Hands what is written to all who read it."""

    def __init__(self, *readers: bytearray) -> None:
        self._readers = readers

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        for reader in self._readers:
            reader.extend(data)
        return len(data)


def run_command(
    environ: Mapping[str, str],
    *words: str,
    alone: bool = False,
    directory: Path | None = None,
    lines: str = "",
) -> Ran:
    """Run a command to its end.

    Args:
        environ: its environment over this process's.
        words: the command.
        alone: it gets nothing of this process's environment.
        directory: where it is started.
        lines: its standard input.
    """
    output, out, err = bytearray(), bytearray(), bytearray()
    with (
        mock.patch.dict(os.environ, environ, clear=alone),
        mock.patch.object(sys, "stdin", io.StringIO(lines)),
        contextlib.chdir(directory or Path.cwd()),
        redirect_stdout(_text(_Pipe(output, out))),
        redirect_stderr(_text(_Pipe(output, err))),
    ):
        code = main(list(words))
    return Ran(code, output.decode(), out.decode(), err.decode())


def result_of(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """Run a command with --json in this environment; return its exit code and what it prints."""
    capsys.readouterr()
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def _text(pipe: _Pipe) -> io.TextIOWrapper:
    return io.TextIOWrapper(pipe, encoding="utf-8", write_through=True)
