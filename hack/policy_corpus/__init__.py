"""A corpus of admission policies: good ones in use, and bad ones."""
