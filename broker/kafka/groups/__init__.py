"""Group coordinators (KIP-848, KIP-932, classic): routing to the home of a group, and committed offsets."""
