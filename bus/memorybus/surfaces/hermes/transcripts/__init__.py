"""Hermes's stored conversations: its `state.db`, and the turns in it.

It reads and never writes. The plugin and the reconciliation use its modules: `state_db` (sessions
and messages), `stored_turns` (turns as they are stored), `turns` (a turn as it is published), and
`scaffolding` (what nobody said).
"""
