"""What people use: the `turnstile` command, the load driver, scenario replay and the Spark jobs."""
