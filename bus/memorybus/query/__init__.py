"""Selects events: a query, ranges of numbers, and the filter that is made from both."""
