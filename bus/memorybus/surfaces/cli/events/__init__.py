"""The commands for events: publishing them from files, showing and searching them, by session too.

Each module has the commands of one name; what they do is in `memorybus.operations`.
"""
