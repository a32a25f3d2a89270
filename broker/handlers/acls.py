"""DescribeAcls, CreateAcls, DeleteAcls 1-3: SECURITY_DISABLED, as Kafka 4.1 answers without an authorizer."""

from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from broker.serve.call import Call, Route

_NO_AUTHORIZER = "No Authorizer is configured on the broker"


def routes() -> list[Route]:
    return [Route(29, 1, 3, _describe_acls), Route(30, 1, 3, _create_acls), Route(31, 1, 3, _delete_acls)]


def _describe_acls(request: DescribeAclsRequest, call: Call) -> Message:
    return call.types.DescribeAclsResponse(
        error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER, resources=()
    )


def _create_acls(request: CreateAclsRequest, call: Call) -> Message:
    types = call.types
    refused = types.AclCreationResult(error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
    return types.CreateAclsResponse(results=tuple(refused for _ in request.creations))


def _delete_acls(request: DeleteAclsRequest, call: Call) -> Message:
    types = call.types
    refused = types.DeleteAclsFilterResult(
        error_code=codes.SECURITY_DISABLED, error_message=_NO_AUTHORIZER, matching_acls=()
    )
    return types.DeleteAclsResponse(filter_results=tuple(refused for _ in request.filters))
