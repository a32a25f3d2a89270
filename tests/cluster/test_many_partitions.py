"""`up --topic` with many partitions: shards that are busy making them are at work, not hung (broker/process/shard_watchdog.py)."""

from harness import admitted, connect, running


def test_shards_live_through_the_topics_that_up_creates(tmp_path):
    options = [part for number in range(10) for part in ("--topic", f"wide-{number}:10000")]
    with running(tmp_path / "d", "--set", "turnstile.shard.timeout.ms=100", *options) as cluster:
        with connect(cluster.address) as sock:
            assert admitted(sock)
        assert [row["restarts"] for row in cluster.get("/v1/shards")["shards"]] == [0, 0]
