"""The pools of a kind that have another rule after a change, where there may be a million of them."""

from collections.abc import Callable, Iterable

from shards.limits.caps import GENERAL, CapRule

RuleOf = Callable[[str], CapRule]


def changed_of_kind(kind: str, before: RuleOf, after: RuleOf, listed: Iterable[str]) -> set[str]:
    """GENERAL and the kind, if the rule of the pools that no setting names is another one; and the pools of that kind among
    `listed`, which settings name before or after, that do not follow it: a pool does that had the general rule before, or one
    equal to it, and has it now."""
    general, now = before(f"{kind}:"), after(f"{kind}:")
    found = set()
    for pool in listed:
        if pool.startswith(f"{kind}:"):
            rule = before(pool)
            if after(pool) != (now if rule == general else rule):
                found.add(pool)
    return found if general == now else found | {f"{GENERAL}{kind}"}
