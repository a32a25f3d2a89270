"""The classes that handlers take their requests and answers for: those of the schemas, with a default where a version has no such
field."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from broker.wire import apis, requests, responses, wire
from scripts import make_messages


def test_the_classes_are_what_the_schemas_say() -> None:
    for name, text in make_messages.modules().items():
        assert (make_messages.WIRE / name).read_text() == text, "run scripts/make_messages.py"


@pytest.mark.parametrize("api_key", apis.APIS)
def test_every_field_can_be_read_in_every_version(api_key: int) -> None:
    api = apis.APIS[api_key]
    for version in range(api.min_version, api.max_version + 1):
        types = wire.request_types(api_key, version)
        for name, fields in wire.request_fields(api_key).items():
            made = getattr(types, name)
            if not isinstance(made, type):
                continue  # a structure that this version lacks
            message = object.__new__(made)
            for field in fields.values():
                if field.name not in made.field_names:
                    assert getattr(message, field.name) == field.default


def test_the_default_is_the_schemas_own() -> None:
    request = wire.request_types(apis.METADATA, 0).MetadataRequest(topics=())
    assert request.allow_auto_topic_creation is True
    assert request.include_topic_authorized_operations is False
    assert isinstance(requests.MetadataRequest, type)


def test_a_field_that_no_version_has_is_a_mistake() -> None:
    request = wire.request_types(apis.METADATA, 0).MetadataRequest(topics=())
    with pytest.raises(AttributeError, match="no version of MetadataRequest has nothing"):
        _ = request.nothing


@pytest.mark.parametrize("api_key", apis.APIS)
def test_a_response_of_any_version_is_stated_with_each_of_its_fields(api_key: int) -> None:
    stated = getattr(responses, f"{apis.api_name(api_key)}Types")
    api = apis.APIS[api_key]
    for version in range(api.min_version, api.max_version + 1):
        for name, fields in wire.fields_of_version(api_key, version, "response").items():
            assert {field.name for field in fields} <= getattr(stated, name).__annotations__.keys()
