"""By which private endpoint of a cloud a client came, as its load balancer says it in a TLV of the PROXY protocol. Pure.

Sources: the documents of AWS PrivateLink, Azure Private Link and Google's Private Service Connect; nginx's
ngx_http_proxy_protocol_vendor_module has the same three.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

MOST_BYTES: Final = 128
"""The longest TLV whose id is shown."""


class _IdForm(NamedTuple):
    """The spelling of the id by a cloud: behind `prefix`, its subtype, as a text or as an integer in this order of bytes."""

    cloud: str
    prefix: bytes
    form: Literal["text", "big", "little"]


_FORMS: Final = {
    0xEA: _IdForm("aws", b"\1", "text"),
    0xEE: _IdForm("azure", b"\1", "little"),
    0xE0: _IdForm("gcp", b"", "big"),
}


def endpoint_id(tlvs: Mapping[int, bytes]) -> str | None:
    """`aws:vpce-08d2bf15fac5001c9`, `azure:117440513`, `gcp:4398046511104`; None: the header does not say it, or not so."""
    for kind, (cloud, prefix, form) in _FORMS.items():
        value = tlvs.get(kind, b"")
        if not value.startswith(prefix) or not len(prefix) < len(value) <= MOST_BYTES:
            continue
        value = value[len(prefix) :]
        if form != "text":
            return f"{cloud}:{int.from_bytes(value, form)}"
        if value.isascii() and (text := value.decode()).isprintable():
            return f"{cloud}:{text}"
    return None
