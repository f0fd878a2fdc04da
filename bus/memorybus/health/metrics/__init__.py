"""The status as Prometheus reads it: the same figures and findings, under its rules for names.

It reads through `read_status` and computes nothing of its own. Needs the extra `metrics`.
"""
