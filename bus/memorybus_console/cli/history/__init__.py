"""The commands that work on the history: ``memorybus archive|replay|rebuild|verify|diff``.

They import the operations on copies, rebuilds and the archive. Only the root command imports them.
"""
