"""Dead letters as an operator handles them: selecting, asking for an action, waiting for it.

It uses the records of the layers below, and changes dead letters only by requests to the owners of
their lanes. Only commands and the page use it.
"""
