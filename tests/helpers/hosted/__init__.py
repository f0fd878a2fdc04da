"""Hosted Hermes plugins in tests."""
