"""ACLs as records: added once, removed, bounded, and read back."""

import pytest

from shards.config.acl_changes import acls_delta, check_acl_record, key_of_acl
from shards.config.config_state import ConfigState
from shards.config.store_recovery import usable_records
from shards.settings.errors import ConfigInvalid

ACL = [2, "orders", 3, "User:alice", "*", 3, 3]


def state(**static: str) -> ConfigState:
    return ConfigState(1, {f"/{name.replace('_', '.')}": text for name, text in static.items()})


def test_an_acl_is_added_once_and_removed():
    now = state()
    delta = acls_delta(now, [[ACL, True], [ACL, True]])
    assert delta == [("acl", key_of_acl(ACL), True)]
    now.put(delta)
    assert acls_delta(now, [[ACL, True]]) == []
    assert acls_delta(now, [[ACL, False]]) == [("acl", key_of_acl(ACL), None)]
    assert acls_delta(state(), [[ACL, False]]) == []
    assert now.dump()[-1] == delta[0]


def test_there_are_at_most_as_many_as_are_set():
    now = state(turnstile_max_acls="1")
    now.put(acls_delta(now, [[ACL, True]]))
    with pytest.raises(ConfigInvalid, match=r"turnstile\.max\.acls"):
        acls_delta(now, [[[2, "b", *ACL[2:]], True]])
    now = state(turnstile_max_acls="0")
    now.put([("acl", key_of_acl(ACL), True)])
    assert acls_delta(now, [[ACL, False]]), "fewer is no more"


@pytest.mark.parametrize(
    ("key", "value"), [("{}", True), (key_of_acl(ACL)[:-1], True), (key_of_acl(ACL), {}), (key_of_acl(ACL[:-1]), True),
                       (" " + key_of_acl(ACL), True), (key_of_acl(["2", *ACL[1:]]), True)],
)  # fmt: skip
def test_a_damaged_record_is_left_out(key, value):
    good, faults = usable_records([("acl", key_of_acl(ACL), True), ("acl", key, value)])
    assert good == [("acl", key_of_acl(ACL), True)] and len(faults) == 1
    check_acl_record(key_of_acl(ACL), True)
