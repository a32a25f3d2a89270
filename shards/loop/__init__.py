"""One event loop: the poller, timers, time slices, turns, and the one kind of deferred."""
