"""The commands that publish events from files, show and search them, and show their sessions.

Each module has the commands of one name; what they do is in `memorybus_console.operations`.
"""
