"""Lets an operator select dead letters, request an action on them, and wait for it.

It uses the records of the layers below, and changes dead letters only by requests to the owners of
their lanes. Only commands and the page use it.
"""
