"""Hermes Agent on the bus: its memory plugin, and its installation, status and reconciliation.

It is an integration as anybody may write one: it imports the public names of `memorybus` and of
its public modules, and the few other modules that tests/test_architecture.py names. The docstrings
of the packages `plugin`, `reconcile`, `install` and `transcripts` say which of their names other
code may use. The other modules (`home`, `masking`, `problems`, `scopes`, `skills`) serve all four.
"""
