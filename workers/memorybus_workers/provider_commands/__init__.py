"""Answers commands, which may not import providers: kinds, instances and trials."""
