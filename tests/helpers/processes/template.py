"""A process that has loaded the product's modules and forks a child for each program of a test.

``python -m helpers.processes.template FD`` reads orders from the socket `FD`; `preloaded` sends
them. A child differs from a program that was started afresh in nothing but this: its modules are
loaded already, its parent is this process, and it does not destroy its modules at the end: that
takes as long as a short program does.
"""

import atexit
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, TextIO

import msgspec
from memorybus.processes import commands

from helpers.processes.preloaded import STARTED_BY, Order, fork_children, order_of, run

_MOST_BYTES = 1 << 18
"""More than an order has, which is one message."""

_MODULES = (
    "memorybus_workers.processes.process",
    "memorybus_workers.processes.supervisor",
    "memorybus_workers.processes.worker",
    "memorybus_workers.jobs.worker",
    "memorybus_providers.builtin.provider",
    "memorybus_providers.holographic.provider",
    "memorybus_console.cli.app",
    "memorybus.agent.client",
    "memorybus_console.operations.doctor.doctor",
    "memorybus.recall.operator_recall",
    "memorybus_console.cli.memory.recall",
    "pyarrow.parquet",
    "cyclopts.completion",
    "encodings.idna",
    "rich.panel",
    "helpers.providers.recording",
)


def main() -> None:
    """Fork a child for each order until nobody orders any more; in a child, run its program."""
    from memorybus.processes.light_imports import load_redis

    load_redis()
    for module in _MODULES:
        import_module(module)
    assert threading.active_count() == 1, "a module starts a thread: no child may be forked"
    gc.collect()
    gc.freeze()
    installed = sys.path[1 + len(_path(os.environ)) :]
    order = _serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        _run(order, installed)


def _serve(orders: socket.socket) -> Order | None:
    """Return an order in the child that is to run it, None here when the last one was given.

    A child's status goes to the socket that came with its order: ``{"pid": …}`` once it is there,
    ``{"code": …}`` when it has ended. Children give orders, too, by a socket of their own: the
    first one ends with the tests, whoever has outlived them.
    """
    theirs, for_children = socket.socketpair(type=socket.SOCK_SEQPACKET)
    told: dict[int, tuple[int, socket.socket]] = {}  # by the child's pidfd
    poller = select.poll()
    sources = {source.fileno(): source for source in (orders, theirs)}
    for source in sources:
        poller.register(source, select.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready not in sources:
                poller.unregister(ready)
                _tell_end(ready, *told.pop(ready))
                continue
            data, files, _, _ = socket.recv_fds(sources[ready], _MOST_BYTES, 4)
            if not data:
                return None
            *standard, status = files
            pid = os.fork()
            if pid == 0:
                others = [*sources.values(), *(other for _, other in told.values())]
                _take_over([*told, status], others, standard)
                fork_children(partial(run, for_children))
                return msgspec.json.decode(data, type=Order)
            for file in standard:
                os.close(file)
            end = os.pidfd_open(pid)
            told[end] = (pid, socket.socket(fileno=status))
            _tell(told[end][1], {"pid": pid})
            poller.register(end, select.POLLIN)


def _tell_end(end: int, pid: int, status: socket.socket) -> None:
    """Take a dead child off the table of processes, and say how it ended."""
    _, code = os.waitpid(pid, 0)
    os.close(end)
    with status:
        _tell(status, {"code": os.waitstatus_to_exitcode(code)})


def _tell(status: socket.socket, what: Mapping[str, int]) -> None:
    with suppress(OSError):  # who ordered it is gone
        status.sendall(json.dumps(what).encode() + b"\n")


def _take_over(
    files: Collection[int], sockets: Collection[socket.socket], standard: Sequence[int]
) -> None:
    """Close the parent's files and sockets; use those that came with the order from here on."""
    os.setsid()
    for each in sockets:
        each.close()
    for file in files:
        os.close(file)
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = (_reopened(stream) for stream in (sys.stdout, sys.stderr))


def _reopened(stream: TextIO) -> TextIO:
    """Return a stream for the same descriptor: Python asks a file for its place, not a pipe."""
    return io.TextIOWrapper(
        open(stream.fileno(), "wb", buffering=0, closefd=False),
        encoding=stream.encoding,
        errors=stream.errors,
        write_through=True,  # as PYTHONUNBUFFERED has it, which all programs of tests have
    )


class _Replaced(BaseException):
    """The program is to be replaced by another one, as by `os.execve`."""

    def __init__(self, _path: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
        super().__init__()
        self.order = order_of(words[1:], environ, None)


def _replace(*command: Any) -> NoReturn:
    raise _Replaced(*command)


def _run(order: Order, installed: list[str]) -> NoReturn:
    """Do what ``python -m`` does; `installed` is where modules are found without PYTHONPATH."""
    atexit._clear()
    vars(commands)["os"] = SimpleNamespace(execve=_replace)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order.environ)
    _show(order)
    os.environ.pop(STARTED_BY, None)
    time.tzset()
    os.chdir(order.directory)
    os.umask(order.umask)
    safe = order.words[0] == "-P"
    module, *arguments = order.words[2 if safe else 1 :]
    sys.path[:] = [*([] if safe else [order.directory]), *_path(order.environ), *installed]
    invalidate_caches()
    sys.argv = [module, *arguments]
    sys.orig_argv = [sys.executable, *order.words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except _Replaced as replaced:
        _run(replaced.order, installed)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    _leave(code)


def _show(order: Order) -> None:
    """Let others see the program's command line and environment instead of this process's own.

    The kernel shows what is where it has put ours; nothing here reads that any more.
    """
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arguments, end_of_arguments, environ, end_of_environ = map(int, stat[45:49])
    variables = [f"{name}={value}" for name, value in order.environ.items()]
    for begin, end, words in (
        (arguments, end_of_arguments, [sys.executable, *order.words]),
        (environ, end_of_environ, variables),
    ):
        text = b"".join(os.fsencode(word) + b"\0" for word in words)
        assert len(text) < end - begin, "raise ROOM: the program has more words or variables"
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, text, len(text))


def _leave(code: int) -> NoReturn:
    """End as Python does, except that modules are not destroyed.

    Threads that are no daemons are waited for, and what is registered for the end is called. The
    children of multiprocessing end in this way, too.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _path(environ: Mapping[str, str]) -> list[str]:
    return [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]


if __name__ == "__main__":
    main()
