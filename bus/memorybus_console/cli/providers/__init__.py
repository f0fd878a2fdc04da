"""The commands ``memorybus provider``: list, add, set up, test, pause, limit, move and remove.

They import the operations on providers, and a dialogue that asks a person. The root command imports
them, and `memorybus hermes` imports the setup.
"""
