"""The part that an agent's process uses: the client, its sessions, its tools, also for asyncio."""
