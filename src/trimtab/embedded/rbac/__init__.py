"""Authorization: who may do what, by the roles and bindings in the store."""
