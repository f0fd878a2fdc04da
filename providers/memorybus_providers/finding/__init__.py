"""From a question to facts: the one way of finding them, whatever store holds them.

A store answers the questions of ``source``, small ones: which facts hold a word, what stands around
them. ``search`` makes answers of that, by the packages ``language``, ``ranking`` and ``truth``:
``vocabulary`` knows the forms of words, ``standing`` what holds now, ``entities`` and
``connections`` who is meant, ``essentials`` what matters where nothing is asked.
No database enters here; stores and tools use it.
"""
