"""The page of operators on a real server, and a browser."""
