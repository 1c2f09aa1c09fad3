"""The gateway: where clients ask for workers, over HTTPS and as JSON."""
