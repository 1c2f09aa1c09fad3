"""The operators that ship with Trimtab, each in a package of its own."""
