"""The checks of the verdict: one module each, a function of the Timeline that returns a Finding. No clock, no I/O."""
