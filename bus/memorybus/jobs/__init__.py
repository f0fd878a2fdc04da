"""The client's side of RQ jobs other than recalls, and the wait for a reply.

Jobs are named by strings on an allow-list; their functions are in the workers' package. Sessions
and commands use this package.
"""
