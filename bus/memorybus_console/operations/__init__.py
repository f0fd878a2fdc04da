"""The work of each command as a service that needs no terminal.

A service takes typed arguments, returns typed results and prints nothing. Commands and
pages call it.
"""
