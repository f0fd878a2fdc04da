"""Notifies people by a webhook and a command when a finding begins and when it ends.

The package `health` decides what a finding is; this package decides whom to notify, and when. The
supervisors of workers run it, and so does `memorybus notify test`.
"""
