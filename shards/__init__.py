"""Who owns what, and how tokens, rates and configuration move between the processes of a cluster."""
