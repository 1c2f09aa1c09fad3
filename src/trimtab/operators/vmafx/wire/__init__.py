"""The messages of the wire, generated from the .proto files beside this one.

``python -m hack.protos`` makes them again.
"""
