"""The subcommands of turnstile, one module each; nothing is imported before its command runs."""
