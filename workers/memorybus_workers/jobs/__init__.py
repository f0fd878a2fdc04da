"""Recall processes: they run RQ jobs, which take JSON and name a function of an allow-list."""
