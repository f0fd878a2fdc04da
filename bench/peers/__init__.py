"""Task queues and consumers beside ours, on one server in one run; see `contest`."""

from peers.contest import measure

__all__ = ["measure"]
