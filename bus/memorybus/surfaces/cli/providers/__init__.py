"""The commands ``memorybus provider``: list, add, set up, test, pause, limit, move and remove.

The operations on providers enter, and a dialogue that asks a person. The root command imports
them, and `memorybus hermes` the setup.
"""
