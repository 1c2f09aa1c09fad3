"""A Kubernetes API server in this process: store, registry and HTTP, one on another."""
