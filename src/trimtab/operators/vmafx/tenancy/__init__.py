"""Tenants: whose jobs are whose, proved by tokens of their own issuers."""
