"""A corpus of expressions, for rules of custom resources."""
