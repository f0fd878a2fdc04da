"""Real Redis servers for tests, and what is done to them and to the log in them."""
