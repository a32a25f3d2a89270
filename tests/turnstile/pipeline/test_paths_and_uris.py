"""Paths of this machine and URIs apart."""

from pathlib import Path

import pytest

from turnstile.pipeline.paths_and_uris import as_read, as_spark_has_it, is_uri, local_path, under


@pytest.mark.parametrize("place", ["hdfs://name:8020/j", "s3a://bucket", "viewfs:/j", "s3a://b/a b%20c"])
def test_a_uri_is_left_as_it_is(place: str) -> None:
    assert is_uri(place)
    assert as_spark_has_it(place) == place


@pytest.mark.parametrize(
    ("place", "path"),
    [("file:///shared/a b%20", "/shared/a b%20"), ("file:/shared", "/shared"), ("/a:b/c", "/a:b/c"), ("x", "x")],
)
def test_a_path_of_this_machine_has_two_spellings(place: str, path: str) -> None:
    assert not is_uri(place)
    assert local_path(place) == Path(path)
    assert as_spark_has_it(place) == f"file:{Path(path).absolute()}"


def test_a_name_is_no_pattern_when_it_is_read() -> None:
    assert as_read("/logs/a[1]*") == r"file:/logs/a\[1\]\*"


def test_a_name_in_a_folder() -> None:
    assert under("s3a://bucket/", "x") == "s3a://bucket/x"
