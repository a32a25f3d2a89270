"""Events of users as those of addresses: what counts connections of an address can so count those of a user."""

import pyarrow

from turnstile.pipeline.events import arrays


def by_user(table: pyarrow.Table) -> pyarrow.Table:
    """The rows with their user as their address."""
    return table.set_column(table.column_names.index("ip"), "ip", table["user"])


def of_users(table: pyarrow.Table) -> pyarrow.Table:
    """The rows by user, without refused logins. `table`: `authenticated` events and others."""
    is_refusal = arrays.is_one_of(table, "kind", ("authenticated",)) & arrays.present(table, "reason")
    return by_user(table.filter(pyarrow.array(~is_refusal)))
