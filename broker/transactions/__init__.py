"""The transaction coordinator: its state machine, its log, and the markers that end transactions."""
