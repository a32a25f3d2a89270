"""ACLs for clients of one cluster that differ in their host alone."""

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

ALLOWED_UNLESS_DENIED = (
    "--set", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "--set", "allow.everyone.if.no.acl.found=true",
)  # fmt: skip
"""Options of `turnstile up`: ACLs hold, and a resource without any is open to all."""


def deny_host(bootstrap: str, topic: str, host: str) -> None:
    """Every host but one may use a topic, without a login. Returns when the ACLs are in force."""
    rules = [
        AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", where, AclOperation.ALL, kind)
        for where, kind in (("*", AclPermissionType.ALLOW), (host, AclPermissionType.DENY))
    ]  # fmt: skip
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_acls(rules).values():
        made.result(20)
