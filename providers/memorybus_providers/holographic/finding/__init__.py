"""What is read from the file: the facts that may answer, lists, entities, and what holds now."""
