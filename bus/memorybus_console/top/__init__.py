"""`memorybus top`: a live view of the bus in a terminal, with an operator's urgent actions.

It shows the status of `memorybus status`, and dead letters and events as the commands show them.
Its actions are the operations of `memorybus provider` and `memorybus dlq`. It needs the extra `top`
(textual). Only the command line imports it.
"""
