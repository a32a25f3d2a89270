"""The transaction coordinator: APIs, state machine, log, and the markers that end transactions."""
