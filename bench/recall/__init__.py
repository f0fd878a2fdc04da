"""How long a prompt waits for what is remembered, and how much of it is found.

The prompts are warm, cold, or about another topic each time, and the whole bus answers them.
`evidence` measures how much of the evidence recall finds in real conversations.
"""
