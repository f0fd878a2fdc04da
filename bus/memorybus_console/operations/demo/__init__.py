"""A demonstration of the whole system on a real Redis in a few seconds; it leaves nothing behind.

It starts a server and a worker of its own, publishes the conversation of ``play.json`` (written for
it) and asks a question. `memorybus demo` shows the result.
"""
