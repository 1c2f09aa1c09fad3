"""Webhooks: those outside of the server who are asked about a write."""
