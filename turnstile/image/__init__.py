"""What the image runs: the environment and the mounted files become the command line of `turnstile up`."""
