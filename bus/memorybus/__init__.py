"""The event-sourced memory bus for AI agents."""
