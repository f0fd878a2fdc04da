"""Runs the child process: it detaches itself, loads the plugin, and serves until it is unused."""

import atexit
import contextlib
import importlib
import json
import logging
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from . import frames
from .failures import answer_of
from .host import Host, Plugin
from .output import Mask, capture, kept_secrets
from .watch import Watch

_HELLO_SECONDS = 10.0


def run(listener: int, configuration: bytes) -> None:
    """Continue in a detached process and print its id; never returns.

    Args:
        listener: the file descriptor of a listening socket.
        configuration: a JSON object; see `launch.Launch` of the parent.
    """
    config = json.loads(configuration)
    child = os.fork()
    if child:
        os.write(1, str(child).encode())
        os._exit(0)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    home = Path(config["home"])
    mask = Mask([*config["secrets"], *kept_secrets(home / ".env")])
    capture(Path(config["log"]), mask)
    with socket.socket(fileno=listener) as listening:
        serve(listening, HostService(config, mask), config["idle"])
    os._exit(0)  # a normal exit would wait for the threads that plugins leave


class HostService:
    """Serves all connections with the host, or with the reason why it could not be made.

    Args:
        config: see `run`.
        mask: removes credentials from messages.
    """

    def __init__(self, config: dict[str, Any], mask: Mask) -> None:
        self.mask = mask
        self.failure: dict[str, str] | None = None
        self.host: Host | None = None
        try:
            self.host = _make_host(config)
        except BaseException as error:
            self.failure = answer_of(error, mask)

    def hello(self) -> dict[str, Any]:
        """Return the greeting that is sent to a new connection."""
        return {"version": frames.VERSION, "pid": os.getpid(), "failure": self.failure}

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, or its failure."""
        try:
            if self.host is None:
                return {"error": self.failure}
            return {"value": self.host.answer(request)}
        except BaseException as error:  # also SystemExit: a plugin must not end this process
            exhausted = self.host is not None and self.host.exhausted
            return {"error": answer_of(error, self.mask), "exhausted": exhausted}

    def close(self) -> None:
        """Close the plugin's instances."""
        if self.host is not None:
            self.host.close()


def serve(listening: socket.socket, service: HostService, idle: float) -> None:
    """Serve each connection in a thread, until there has been none for `idle` seconds."""
    threads: list[threading.Thread] = []
    listening.settimeout(idle)
    while service.host is not None or not threads:
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            threads = [one for one in threads if one.is_alive()]
            if not threads:
                break
            continue
        thread = threading.Thread(target=_converse, args=(connection, service), daemon=True)
        thread.start()
        threads = [*(one for one in threads if one.is_alive()), thread]
    with contextlib.suppress(OSError):
        Path(listening.getsockname()).unlink()  # first, so that a new caller starts another child
    listening.close()
    for thread in threads:
        thread.join(_HELLO_SECONDS)
    service.close()


def _converse(connection: socket.socket, service: HostService) -> None:
    with connection, contextlib.suppress(OSError, frames.FrameError):
        connection.settimeout(None)
        frames.send(connection, service.hello())
        while (request := frames.receive(connection)) is not None:
            _send(connection, service.reply(request), service)


def _send(connection: socket.socket, reply: dict[str, Any], service: HostService) -> None:
    try:
        frames.send(connection, reply)
    except frames.FrameError as error:
        frames.send(connection, {"error": answer_of(error, service.mask)})


def _make_host(config: dict[str, Any]) -> Host:
    # This process ends by `_exit`, which runs no handlers, but a registered handler would keep its
    # plugin instance in memory.
    atexit.register = lambda function, *_, **__: function  # type: ignore[assignment]
    loader = importlib.import_module("hermes_cli.env_loader")
    loader.load_hermes_dotenv(hermes_home=config["home"])
    homes = Path(config["home"]), Path(config["person"])
    plugin = Plugin(config["plugin"], config["directory"], *homes)
    watch = Watch(plugin.directory)
    watch.install()
    try:
        plugin.make()
    except BaseException:
        sys.stderr.write("\n".join([*watch.last, ""]))
        raise
    logging.getLogger(plugin.package).setLevel(logging.DEBUG)  # the level of many failures
    return Host(plugin, watch, config["instances"], synchronous=config["settle"] == "synchronous")
