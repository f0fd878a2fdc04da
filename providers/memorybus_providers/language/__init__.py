"""Reads texts: their words and the forms of these, what a question asks; pure.

Any provider that stores texts may use this package. It reads any script, and uses neither files
nor databases.
``words`` cuts a text into tokens, ``languages`` knows inflection, ``sentences`` finds what a prompt
asks, ``times`` reads the times in it, and ``query`` reads a question.
"""
