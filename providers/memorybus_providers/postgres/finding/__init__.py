"""What is read: facts as `memorybus_providers.finding` asks for them."""
