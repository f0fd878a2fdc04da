"""The part that an agent's process uses: the client, its sessions, its tools, also for asyncio.

Everything an agent needs is here and is light to import; heavier parts are imported when they are
first used. Agents and their adapters, such as Hermes's plugin, use this package.
"""
