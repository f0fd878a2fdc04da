"""Events, sessions and people for tests."""
