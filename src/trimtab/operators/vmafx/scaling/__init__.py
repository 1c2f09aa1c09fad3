"""Scale to demand: sets of nodes, and what tells how many are needed."""
