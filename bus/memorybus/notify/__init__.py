"""Tells people of findings through a webhook and a command: once when one begins, once at its end.

The package `health` decides what a finding is; this package decides whom to tell, when, and what.
The supervisors of workers run it, and so does `memorybus notify test`.
"""
