"""The pools of a kind that have another rule after a change, where there may be a million of them."""

from collections.abc import Callable, Iterable

from shards.limits.caps import GENERAL, CapRule

RuleOf = Callable[[str], CapRule]


def changed_of_kind(kind: str, before: RuleOf, after: RuleOf, listed: Iterable[str]) -> set[str]:
    """GENERAL and the kind, if the general rule changed, that of pools which no setting names; and each pool of that kind among
    `listed`, which settings name before or after, whose new rule is not the expected one. Expected is the new general rule of a
    pool that had the old one, and of any other pool its own rule unchanged."""
    general, now = before(f"{kind}:"), after(f"{kind}:")
    found = set()
    for pool in listed:
        if pool.startswith(f"{kind}:"):
            rule = before(pool)
            if after(pool) != (now if rule == general else rule):
                found.add(pool)
    return found if general == now else found | {f"{GENERAL}{kind}"}
