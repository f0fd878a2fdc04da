"""The tools that a model calls: what they take, and what they do."""
