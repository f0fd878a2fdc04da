"""The command line: thin groups of commands over the client, the log and the monitor."""

from memorybus.surfaces.cli.app import build, main

__all__ = ["build", "main"]
