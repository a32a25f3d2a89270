"""`turnstile report`: who was refused, when and why."""
