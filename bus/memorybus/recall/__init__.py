"""What is remembered for a session: asked for ahead, kept warm, read in one round trip.

Requests and results enter here; the providers' answers are made in the workers' jobs. Sessions
read it, and the sending side puts its requests behind the events that they should see. Operators
ask in a session's place (`live`, `asking`).
"""
