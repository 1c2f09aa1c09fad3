"""Policies: expressions, kept as objects, that refuse or change what clients write."""
