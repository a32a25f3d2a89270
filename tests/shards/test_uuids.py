"""Ids are Kafka's: 22 characters of base64 that begin with no dash."""

from uuid import UUID

from shards import uuids
from shards.uuids import random_uuid, uuid_text


def test_an_id_that_begins_with_a_dash_is_made_again(monkeypatch):
    dashed, plain = UUID(bytes=b"\xfb" + bytes(15)), UUID(bytes=b"\xf7" + bytes(15))
    assert uuid_text(dashed) == "-wAAAAAAAAAAAAAAAAAAAA"
    made = iter([dashed, dashed, plain])
    monkeypatch.setattr(uuids, "uuid4", lambda: next(made))
    assert random_uuid() == plain
    assert uuid_text(plain) == "9wAAAAAAAAAAAAAAAAAAAA"
