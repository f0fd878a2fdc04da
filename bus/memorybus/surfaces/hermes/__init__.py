"""Hermes Agent on the bus: its memory plugin, and what installs, shows and reconciles it.

It is an integration as anybody may write one: it imports the public names of `memorybus` and of
its public modules, and the few modules more that tests/test_architecture.py names. Each folder has
a door of its own: `plugin`, `reconcile`, `install` and `transcripts` say what others may use. The
modules beside them (`home`, `config`, `scopes`, `entries`, `problems`) are for all four.
"""
