"""Pod security: how much of the machine the pods of a namespace may reach for."""
