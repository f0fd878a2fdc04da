"""What a prompt would be given now, as an operator asks: no agent's recall uses it."""
