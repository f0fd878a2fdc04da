"""Recall processes: they run RQ jobs, which take JSON and name a function of an allow-list.

Provider instances and the jobs' Redis enter; lanes do not. A worker starts one process for each
provider with requests.
"""
