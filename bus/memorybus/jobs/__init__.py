"""The client's side of RQ jobs other than recalls, and the wait for a reply.

Jobs are named by strings on an allow-list; the callables live with the workers. Sessions and
commands use it.
"""
