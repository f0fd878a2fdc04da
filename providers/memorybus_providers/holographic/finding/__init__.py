"""What is read from the file: facts as `memorybus_providers.finding` asks for them."""
