"""What follows from an operator's own source: its CRDs, permissions, chart, project."""
