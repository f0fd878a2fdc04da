"""`memorybus top`: the bus in a terminal, live, with the acts that an operator needs at night.

What is shown is the status of `memorybus status`, dead letters and events as the commands show
them; acts are the operations of `memorybus provider` and `memorybus dlq`. It needs the extra `top`
(textual). Only the command line loads it.
"""
