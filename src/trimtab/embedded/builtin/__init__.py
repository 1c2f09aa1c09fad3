"""Built-in kinds: what the real server does with each beyond its schema.

Pure functions over plain JSON. A new object goes through ``shape``, ``set_defaults``,
``prepare`` and ``validate`` in this order, and so does a changed one, with the object
as it was.
"""

from trimtab.embedded.builtin.defaults import set_defaults
from trimtab.embedded.builtin.fields import field_error, fields, supported_fields
from trimtab.embedded.builtin.printers import (
    TableColumn,
    arranged,
    columns,
    row,
    row_conditions,
)
from trimtab.embedded.builtin.shapes import has_shape, shape
from trimtab.embedded.builtin.strategy import generation, prepare
from trimtab.embedded.builtin.validation import validate

__all__ = [
    "TableColumn",
    "arranged",
    "columns",
    "field_error",
    "fields",
    "generation",
    "has_shape",
    "prepare",
    "row",
    "row_conditions",
    "set_defaults",
    "shape",
    "supported_fields",
    "validate",
]
