"""Recall: memories for a session are requested ahead, kept warm, and read in one round trip.

This package writes requests and reads results; the workers' jobs make the providers' answers.
Sessions read the results. The sending side sends a request only after the events that its answer
should include. Operators ask in place of a session (`operator_recall`).
"""
