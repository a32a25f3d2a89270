"""The event file between the emulator and the pipeline: written by every shard, read by Spark."""
