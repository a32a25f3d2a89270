"""One module per API family: each has routes(...), the table of the APIs and versions it answers."""
