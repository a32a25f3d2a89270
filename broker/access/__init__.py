"""Who may do what: Kafka's StandardAuthorizer as pure matching, and the guards that ask it before a handler does."""
