"""Share groups (KIP-932) as pure state: members and what they are assigned."""
