"""The commands that work on the history: ``memorybus archive|replay|rebuild|verify|diff``."""
