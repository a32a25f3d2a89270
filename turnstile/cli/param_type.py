"""click's ParamType with the type of its values, which click takes at run time only since 8.3: many environments have 8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """`ParamType[T]` is ParamType."""

        def __class_getitem__(cls, of: object) -> type:
            return cls


__all__ = ["ParamType"]
