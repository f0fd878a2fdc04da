"""What holds now, where two statements compete; pure.

``claims`` reads what a text claims of whom, ``succession`` says which claim takes the place of
which. Stores hand in the facts that may compete, and mark those that hold no longer.
"""
