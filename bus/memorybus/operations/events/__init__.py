"""Events as people look for them: searched by words and by whose they are, and what became of one.

What reads the history and the lanes enters; nothing is changed. Commands and the page call it.
"""
