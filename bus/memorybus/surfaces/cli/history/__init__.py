"""The commands that work on the history: ``memorybus archive|replay|rebuild|verify|diff``.

The operations on copies, rebuilds and the archive enter. Only the root command imports them.
"""
