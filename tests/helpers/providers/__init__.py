"""Providers for tests: they record, misbehave, leak and answer."""
