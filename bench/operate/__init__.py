"""What it costs to keep the bus running and to look at it.

Measured are an idle `memorybus up`, scrapes of the metrics, traces, and the page of operators with
a long history behind it.
"""
