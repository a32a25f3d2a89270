"""The operations that answers say a client is allowed (KIP-430), as bits of AclOperation, while no authorizer is set."""

from __future__ import annotations

from typing import Final

OPERATIONS_UNKNOWN: Final = -(2**31)
"""The client did not ask for them."""
ALL_CLUSTER_OPERATIONS: Final = 8096
"""Create, alter, describe, cluster action, describe and alter configs, idempotent write."""
ALL_TOPIC_OPERATIONS: Final = 3576
"""Read, write, create, delete, alter, describe, describe and alter configs."""
ALL_GROUP_OPERATIONS: Final = 3400
"""Read, delete, describe, and describe and alter configs."""
