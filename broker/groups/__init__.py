"""The group coordinator's state machine, its clock and its committed offsets."""
