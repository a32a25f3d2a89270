"""The entry of the image: the environment and the mounted files become the command line of `turnstile up`."""
