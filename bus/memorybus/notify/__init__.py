"""Notifies people of findings by a webhook and a command, once at the beginning, once at the end.

The package `health` decides what a finding is; this package decides whom to notify, and when. The
supervisors of workers run it, and so does `memorybus notify test`.
"""
