"""Agents of other frameworks on the bus, by the public names of memorybus.

Each module needs the extra of its framework: `anthropic`, `langgraph`, `openai-agents`.
"""
