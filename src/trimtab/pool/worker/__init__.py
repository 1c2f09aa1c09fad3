"""The worker's side of a pool: the gate that keeps two clients apart, and a program."""
