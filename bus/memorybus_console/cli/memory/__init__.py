"""The commands that recall, list, correct, delete, export and forget what is remembered.

Each module has the commands of one name; what they do is in `memorybus_console.operations`.
"""
