"""Users, delegation tokens and ACLs: APIs, and Kafka's StandardAuthorizer as pure matching."""
