"""Agents of other frameworks on the bus, by the public names of memorybus.

Each module needs the extra of its name: `openai_agents`, `langgraph`.
"""
