"""Guards of the APIs of ACLs and of SCRAM users: CLUSTER_AUTHORIZATION_FAILED. Source: AclApis, ControllerApis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.security.acl import Operation
from broker.kafka.security.guards import (
    CLUSTER_DENIED,
    CLUSTER_MESSAGE,
    of_cluster,
    whole,
)
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.requests import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
    from broker.wire.responses import AlterUserScramCredentialsTypes, DescribeUserScramCredentialsTypes


def _alter_scram(types: AlterUserScramCredentialsTypes, request: AlterUserScramCredentialsRequest) -> Message:
    names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    results = (
        types.AlterUserScramCredentialsResult(user=each, error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE)
        for each in names
    )
    return types.AlterUserScramCredentialsResponse(results=tuple(results))


def _describe_scram(types: DescribeUserScramCredentialsTypes, request: DescribeUserScramCredentialsRequest) -> Message:
    """One result for each user of the request, without the user's name and without a message, as in Kafka."""
    results = tuple(
        types.DescribeUserScramCredentialsResult(
            user="", error_code=CLUSTER_DENIED, error_message=None, credential_infos=()
        )
        for _ in request.users or ()
    )
    return types.DescribeUserScramCredentialsResponse(error_code=CLUSTER_DENIED, error_message=None, results=results)


describe_acls = of_cluster(
    Operation.DESCRIBE, whole("DescribeAclsResponse", error_message=CLUSTER_MESSAGE, resources=())
)
create_acls = of_cluster(
    Operation.ALTER,
    lambda types, request: types.CreateAclsResponse(
        results=tuple(
            types.AclCreationResult(error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE) for _ in request.creations
        )
    ),
)
delete_acls = of_cluster(
    Operation.ALTER,
    lambda types, request: types.DeleteAclsResponse(
        filter_results=tuple(
            types.DeleteAclsFilterResult(error_code=CLUSTER_DENIED, error_message=CLUSTER_MESSAGE, matching_acls=())
            for _ in request.filters
        )
    ),
)
describe_user_scram_credentials = of_cluster(Operation.DESCRIBE, _describe_scram)
alter_user_scram_credentials = of_cluster(Operation.ALTER, _alter_scram)
