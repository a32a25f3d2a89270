"""The verdict on a client: a course of throttling and refusals, what the broker saw of it, and what is to be concluded."""
