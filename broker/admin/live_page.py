"""The files of the live page, which the admin API serves itself: the page needs nothing from elsewhere."""

from importlib import resources
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_HEADERS = {
    "cache-control": "no-cache",
    # Text that clients chose is shown on it: nothing but the page's own scripts runs.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
INDEX = "index.html"


class PageFile(NamedTuple):
    """A file of broker/admin/page."""

    content: bytes
    media_type: str


class LivePage:
    """Every file in memory, by name."""

    def __init__(self) -> None:
        files = [file for file in resources.files(__package__).joinpath("page").iterdir() if file.is_file()]
        self._files = {file.name: PageFile(file.read_bytes(), _TYPES[file.name.rpartition(".")[2]]) for file in files}

    def response(self, name: str) -> Response:
        """The file of this name. Raises HTTPException when there is none."""
        found = self._files.get(name)
        if found is None:
            raise HTTPException(404, f"the live page has no file {name!r}.")
        return Response(found.content, media_type=found.media_type, headers=_HEADERS)
