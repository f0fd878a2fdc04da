"""Archives for tests, and logs that are sealed into them."""
