from shards.limits.average import Average
from shards.limits.rate import Window


def test_the_mean_of_what_was_recorded():
    average = Average()
    assert average.measure(now_ms=0) is None
    average.record(100, now_ms=0)
    average.record(300, now_ms=500)
    assert average.measure(now_ms=600) == 200


def test_a_sample_counts_until_its_last_record_is_all_windows_old():
    average = Average(Window(2, 1000))
    average.record(100, now_ms=0)
    average.record(300, now_ms=1000)
    assert average.measure(now_ms=1999) == 200
    assert average.measure(now_ms=2000) == 300
    assert average.measure(now_ms=3000) is None


def test_it_keeps_no_more_samples_than_can_count():
    average = Average(Window(2, 10))
    for now_ms in range(0, 1000, 10):
        average.record(now_ms, now_ms=now_ms)
    assert len(average._samples) == 3
