"""What operators change: each act with its plan, its record in the log and its result.

The actions use the operations and know no terminal and no page. Commands, the page and
`memorybus top` carry them out.
"""
