"""A stretch of network before a server's unix socket: every round trip takes so much longer.

``python bench/stores/latency.py TARGET OWN SECONDS`` forwards connections of the socket OWN to
TARGET, and holds what it reads for half of SECONDS each way. Bytes keep their order, and nothing
waits for what came before it.
"""

import asyncio
import sys
from pathlib import Path

_PIECE = 1 << 18


async def serve(target: Path, own: Path, seconds: float) -> None:
    """Forward until the process ends."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(str(target), limit=_PIECE)
        ways = (_carry(reader, back, seconds / 2), _carry(there, writer, seconds / 2))
        await asyncio.gather(*ways, return_exceptions=True)

    server = await asyncio.start_unix_server(connected, str(own), limit=_PIECE)
    async with server:
        await server.serve_forever()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> None:
    """Hand on what comes, each piece when its time has come."""
    loop = asyncio.get_running_loop()
    while piece := await reader.read(_PIECE):
        loop.call_later(seconds, writer.write, piece)
    loop.call_later(seconds, writer.close)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
