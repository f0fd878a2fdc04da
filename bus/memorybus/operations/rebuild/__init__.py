"""A provider's state again from history: filled beside the live one, compared, swapped.

Copies and their generations enter. Only commands call it.
"""
