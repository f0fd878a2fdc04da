"""The plugin in a Hermes home: put in, taken out, set up, and the truth about it.

Hermes's configuration enters, and no session. `memorybus hermes` and Hermes's own setup call
it.
"""
