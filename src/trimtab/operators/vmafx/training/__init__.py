"""A model that learns from scores while they are made."""
