"""What an agent's process holds: the client, its sessions, its tools, and the same for asyncio.

Everything an agent needs is here and is light to import; heavier parts are imported when first
used. Agents and their adapters, such as Hermes's plugin, stand on it.
"""
