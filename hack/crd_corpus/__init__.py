"""What a real API server is asked about custom resources: schemas, objects, rules."""
