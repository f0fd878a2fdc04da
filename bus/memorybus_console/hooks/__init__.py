"""What Claude Code and Codex start at each step of a session; see `entry`.

A host waits for its hooks, so these modules import next to nothing: they read the transcript, and
the gateway makes events of it.
"""
