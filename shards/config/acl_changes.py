"""Requested ACLs -> the delta to store. The broker that was asked checks them (broker/kafka/security/acls.py)."""

import json
from collections.abc import Sequence

from shards.config.config_state import Change, ConfigState, bounded, storable
from shards.config.messages import AclChange, AclFields
from shards.settings.errors import ConfigInvalid

MOST = "turnstile.max.acls"
_FIELDS = (int, str, int, str, str, int, int)


def key_of_acl(acl: AclFields) -> str:
    """The one spelling of an ACL as the key of its record: resource type, name, pattern type, principal, host, operation and
    permission."""
    return json.dumps([*acl], separators=(",", ":"), ensure_ascii=False)


def check_acl_record(key: str, value: object) -> None:
    """Raises ValueError for a record that is none of `key_of_acl`."""
    acl = json.loads(key)
    if value is not True or [type(each) for each in acl] != [*_FIELDS] or key_of_acl(acl) != key:
        raise ValueError("it is no ACL")


def acls_delta(state: ConfigState, changes: Sequence[AclChange]) -> list[Change]:
    """`changes`: [ACL as of key_of_acl, whether there is to be one]. Raises ConfigInvalid."""
    bounded(changes)
    wanted = dict(state.acls)
    for acl, is_wanted in changes:
        if is_wanted:
            wanted[key_of_acl(acl)] = True
        else:
            wanted.pop(key_of_acl(acl), None)
    most = state.number(MOST)
    if len(wanted) > max(most, len(state.acls)):
        raise ConfigInvalid("ACLs", len(wanted), f"there may be at most {most} ({MOST})")
    keys = dict.fromkeys([*state.acls, *wanted])
    return storable([("acl", key, wanted.get(key)) for key in keys if wanted.get(key) != state.acls.get(key)])
