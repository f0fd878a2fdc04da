"""The whole system on a real Redis in a few seconds, leaving nothing behind.

It starts a server and a worker of its own. `memorybus demo` shows it.
"""
