"""The whole system on a real Redis in a few seconds, leaving nothing behind.

It starts a server and a worker of its own, plays the conversation of ``play.json`` (our own
writing) and asks a question. `memorybus demo` shows it.
"""
