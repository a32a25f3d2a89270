"""The definitions of settings: names, types, defaults, parsing, features. Standard library alone."""
