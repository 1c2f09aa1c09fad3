"""Expressions: the Common Expression Language as Kubernetes speaks it.

A text is read (``parsing``), its types are found (``checking``), and it becomes a
function (``compiling``) that is called with values and a budget. Texts of errors are
those of cel-go, because the API server passes them on to its clients.
"""
