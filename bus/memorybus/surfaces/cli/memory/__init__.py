"""The commands for what is remembered: asking for it, listing, exporting and forgetting it.

Each module has the commands of one name; what they do is in `memorybus.operations`.
"""
