"""The questions that `hack.record_apply_facts` asks a real API server."""
