"""`connection_creation_rate`: an address's own, else the default entity's."""

from shards.limits.ip_quotas import IpQuotaTable
from shards.settings.ranges import INT_MAX


def test_an_address_without_its_own_has_the_default() -> None:
    table = IpQuotaTable()
    assert table.quota("10.0.0.1") is None and not table
    table.update(None, 5)
    table.update("10.0.0.1", 7)
    assert [table.quota(ip) for ip in ("10.0.0.1", "10.0.0.2")] == [7, 5]
    table.update("10.0.0.1", None)
    assert table.quota("10.0.0.1") == 5


def test_int_max_exempts_an_address_from_the_default() -> None:
    table = IpQuotaTable()
    table.update(None, 5)
    table.update("10.0.0.1", INT_MAX)
    assert table.quota("10.0.0.1") is None
    assert table.quotas() == [5]


def test_quotas_of_clients_are_left_out() -> None:
    quotas = [
        ((("user", "alice"),), {"producer_byte_rate": 5.0}),
        ((("ip", "10.0.0.1"),), {"connection_creation_rate": 3.0}),
    ]
    assert IpQuotaTable(quotas).quotas() == [3.0]
