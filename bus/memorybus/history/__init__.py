"""Reads archive and log as one ordered sequence, forward and backward."""
