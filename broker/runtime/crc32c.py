"""CRC-32C of the package crc32c, whose extension module alone is loaded.

Its __init__ reads the metadata of what is installed, for a version that nothing here asks for: a twentieth of the start.
"""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Protocol, cast


class Crc32c(Protocol):
    """The checksum of `data`."""

    def __call__(self, data: bytes | bytearray | memoryview, /) -> int: ...


def _function() -> Crc32c:
    package = find_spec("crc32c")
    places = package and package.submodule_search_locations
    spec = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if spec is None or spec.loader is None:  # a release that is laid out in another way
        import crc32c as whole

        return cast(Crc32c, whole.crc32c)
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    return cast(Crc32c, extension.crc32c)


crc32c: Crc32c = _function()
