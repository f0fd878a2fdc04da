"""How a text is read: its words and their forms, the names in it, what a question asks; pure.

Any provider that stores texts may use this, in any script; it opens no file and knows no database.
``words`` parts a text, ``languages`` knows inflection, ``contractions`` spells English ones out,
``sentences`` finds what a prompt asks, ``times`` reads the times in it, ``query`` reads a question,
``mentions`` finds names.
"""
