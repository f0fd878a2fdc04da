"""Runs unmodified memory plugins of Hermes Agent for the bus: ``kind = "hermes:holographic"``.

A plugin runs in its own process under the Python of a Hermes installation; nothing of Hermes is
imported here. What it prints is written to ``hermes-host.log`` in the instance's home.
"""

from memorybus_providers.adapters.hermes.provider import HostedHermesProvider, host

__all__ = ["HostedHermesProvider", "host"]
