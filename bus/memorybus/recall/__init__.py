"""Recall: memories for a session are requested ahead, kept warm, and read in one round trip."""
