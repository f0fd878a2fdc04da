"""What of an event is kept as facts, and what a store must be able to write; pure.

``utterances`` is what was said, ``notes`` what somebody chose to keep, ``parts`` what each store
does with both. ``fact_provider`` calls them; no database enters.
"""
