"""A process that has loaded the product's modules and forks a child for each program of a test.

``python -m helpers.processes.template FD`` reads orders from the socket `FD`; `preloaded` sends
them. A child differs from a program that was started afresh in nothing but this: its modules are
loaded already, its command line is that of this process, and it does not destroy its modules at the
end: that takes as long as a short program does.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module, invalidate_caches

import msgspec

LENGTH = struct.Struct("!I")
"""Before an order: how many bytes it has."""

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
    "cyclopts.completion",
    "encodings.idna",
    "rich.panel",
    "helpers.providers.recording",
)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is to run.

    Attributes:
        module: the name after ``-m``.
        arguments: what follows it.
        environ: the whole environment.
        directory: where it works.
    """

    module: str
    arguments: list[str]
    environ: dict[str, str]
    directory: str


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
    ``{"code": …}`` when it has ended.
    """
    told: dict[int, tuple[int, socket.socket]] = {}  # by the child's pidfd
    poller = select.poll()
    poller.register(orders, select.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready != orders.fileno():
                poller.unregister(ready)
                _tell_end(ready, *told.pop(ready))
                continue
            data, (log, status) = _receive(orders)
            if not data:
                return None
            pid = os.fork()
            if pid == 0:
                _take_over(orders, log, status, told)
                return msgspec.json.decode(data, type=Order)
            os.close(log)
            end = os.pidfd_open(pid)
            told[end] = (pid, socket.socket(fileno=status))
            told[end][1].sendall(json.dumps({"pid": pid}).encode() + b"\n")
            poller.register(end, select.POLLIN)


def _receive(orders: socket.socket) -> tuple[bytes, tuple[int, int]]:
    """Return an order and its two files, b"" at the end."""
    head, files, _, _ = socket.recv_fds(orders, LENGTH.size, 2)
    if not head:
        return b"", (-1, -1)
    (size,) = LENGTH.unpack(head)
    data = b""
    while len(data) < size:
        data += orders.recv(size - len(data))
    return data, (files[0], files[1])


def _tell_end(end: int, pid: int, status: socket.socket) -> None:
    """Take a dead child off the table of processes, and say how it ended."""
    _, code = os.waitpid(pid, 0)
    os.close(end)
    with status:
        try:
            status.sendall(json.dumps({"code": os.waitstatus_to_exitcode(code)}).encode() + b"\n")
        except OSError:
            return  # who ordered it is gone


def _take_over(
    orders: socket.socket, log: int, status: int, told: dict[int, tuple[int, socket.socket]]
) -> None:
    """Close what belongs to the parent; write to the log from here on."""
    os.setsid()
    orders.close()
    os.close(status)
    for end, (_, other) in told.items():
        os.close(end)
        other.close()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _run(order: Order, installed: list[str]) -> None:
    """Do what ``python -m`` does; `installed` is where modules are found without PYTHONPATH."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order.environ)
    time.tzset()
    os.chdir(order.directory)
    sys.path[:] = [order.directory, *_path(order.environ), *installed]
    invalidate_caches()
    sys.argv = [order.module, *order.arguments]
    sys.orig_argv = [sys.executable, "-m", *sys.argv]
    try:
        runpy.run_module(order.module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    _leave(code)


def _leave(code: int) -> None:
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
