"""What a real server is asked about its built-in kinds, group by group."""
