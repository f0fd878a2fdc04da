"""Turns events into facts, and says what a store must be able to write; pure.

``utterances`` has what was said, ``notes`` what somebody chose to keep, and ``parts`` what each
store does with both. ``fact_provider`` calls them; this package imports no database.
"""
