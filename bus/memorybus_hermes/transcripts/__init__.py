"""Reads Hermes's stored conversations, and the turns in them; never writes.

The plugin and the reconciliation use these modules: `state_db` (sessions and messages),
`stored_turns` (turns as Hermes stores them, and as the bus publishes them), and `scaffolding`
(text that Hermes adds to messages).
"""
