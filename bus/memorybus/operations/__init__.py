"""What operators do, without a terminal: each command's work as a service.

Each service takes typed arguments and returns typed results, and prints nothing. The surfaces
call them.
"""
