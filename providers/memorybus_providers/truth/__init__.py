"""Decides which of two competing statements is true now; pure.

``claims`` reads what a text claims about whom, ``succession`` decides which claim replaces which.
Callers pass the facts that may compete, and get those marked that are no longer true.
"""
