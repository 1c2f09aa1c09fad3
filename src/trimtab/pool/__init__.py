"""Warm workers: pods that a service hands to its clients, one by one."""
