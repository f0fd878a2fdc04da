"""Recall processes: they run RQ jobs, which take JSON and name a function of an allow-list.

This package uses provider instances, the log's Redis and that of the jobs, but no lanes. For each
provider with requests a worker starts as many processes as its ``--jobs`` says.
"""
