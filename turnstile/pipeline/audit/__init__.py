"""`turnstile audit`: was a limit ever exceeded? Proved or refuted from a journal."""
