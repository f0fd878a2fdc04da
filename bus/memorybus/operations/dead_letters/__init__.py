"""Dead letters as an operator deals with them: which are meant, and waiting until it is done.

The records below enter; nothing is changed but by request. Only commands call it.
"""
