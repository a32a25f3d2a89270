"""`turnstile plan`: real connection logs replayed against candidate limits."""
