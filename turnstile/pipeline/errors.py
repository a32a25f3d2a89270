"""What goes wrong for reasons a user can act on."""


class PipelineError(Exception):
    """One sentence that names the input or setting at fault and what to do about it."""
