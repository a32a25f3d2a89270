"""`turnstile report`: which clients were refused, when and why."""
