"""Hermes Agent's memory plugins behind the bus, unmodified: ``kind = "hermes:holographic"``.

A plugin runs in a process of its own under the Python of a Hermes installation; nothing of Hermes
is imported here. What it prints goes to ``hermes-host.log`` in the instance's home.
"""

from memorybus_providers.adapters.hermes.provider import HostedHermesProvider, host

__all__ = ["HostedHermesProvider", "host"]
