"""The command line: one module for each command, and one that chooses among them."""
