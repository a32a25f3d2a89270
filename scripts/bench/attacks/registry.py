"""All attacks, in the order in which they are run; each is in a module of this folder."""

from __future__ import annotations

from scripts.bench.attacks import (
    abandoned_polls,
    admin_clients,
    client_ids,
    delete_groups,
    fast_reader,
    fetch_of_many,
    librdkafka,
    long_client_ids,
    metadata_by_id,
    metadata_of_partitions,
    null_batches,
    pipelining,
    quota_without_home,
    repeated_resources,
    salt,
    tags,
    unfinished_frames,
    unread_fetches,
)
from scripts.bench.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = (
    repeated_resources.ATTACK,
    metadata_by_id.ATTACK,
    metadata_of_partitions.ATTACK,
    null_batches.ATTACK,
    fetch_of_many.ATTACK,
    delete_groups.ATTACK,
    tags.ATTACK,
    unread_fetches.ATTACK,
    unfinished_frames.ATTACK,
    salt.ATTACK,
    abandoned_polls.ATTACK,
    client_ids.ATTACK,
    long_client_ids.ATTACK,
    quota_without_home.ATTACK,
    admin_clients.ATTACK,
    *pipelining.ATTACKS,
    *librdkafka.ATTACKS,
    *fast_reader.ATTACKS,
)
