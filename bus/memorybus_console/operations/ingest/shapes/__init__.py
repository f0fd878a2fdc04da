"""The tables of how exports write files, roles, contents, times and ids; every source uses them.

A value that no table knows makes a message without it, never an error: an export comes from a
program that nobody here controls.
"""
