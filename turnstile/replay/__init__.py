"""`turnstile replay`: scenarios of connects, closes, records and live changes through the limits alone, under virtual time."""
