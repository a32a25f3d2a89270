"""Limits as pure arithmetic: no clock, no I/O, `now` is always a keyword parameter; standard library only.

Used alike by the shards (live), by `turnstile replay` (virtual time) and by the pipeline (what-if over a log).
"""
