"""Forks, wake-ups and waits between attempts: the tools of code with several threads."""
