"""The operations of the library, found by class."""

from typing import Any

from xarr.ir.op import Op


def own_operations(base: type[Op] = Op) -> list[Any]:
    """The concrete ops below `base`, once each: no families, none that a test defined, none that only passes make."""
    operations: dict[type[Op], None] = {}
    for cls in base.__subclasses__():
        if "name" in vars(cls) and cls.__module__.startswith("xarr.") and not cls.is_internal:
            operations[cls] = None
        operations.update(dict.fromkeys(own_operations(cls)))
    return list(operations)
