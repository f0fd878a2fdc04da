"""Reads files: bytes, JSON values, messages in the forms of many programs, and their turns."""
