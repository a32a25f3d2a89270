"""The two settings that a plan recommends, with room above what the log shows, and whom each would have hit.

A cap that equals what was observed is an outage on the first day with one connection more. So both are raised by the headroom:

    simple   one cap for every address
    tight    a lower cap, and an override for each of the few addresses that need more

Invariants
  room_above   the cap has `headroom` above the one that the log alone asks for, each override above the address's peak
  no_override_without_need   an override is above the cap; an address that the raised cap suffices for has none
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from turnstile.pipeline.plan.candidates import commands, paste
from turnstile.pipeline.plan.recommend import LogLevels, Recommendation

NAMED = 5
"""The number of the addresses hit by a variant that are named."""


class Variant(NamedTuple):
    """A cap for every address and overrides (ip -> cap); what both would have refused of the log, leaks that are left out aside,
    and whom.

    `without_headroom`: the cap that the log alone asks for. `addresses_hit`: how many had a connection refused, leaks among
    them; `hit`: those of them with most open at once (ip -> how many). `addresses_close`: how many were not hit, and had less than
    the headroom left at their peak. `leaks_refused`: of the connections left out.
    """

    name: str
    per_ip_cap: int
    overrides: dict[str, int]
    without_headroom: int
    refused: int
    refused_share: float
    addresses_hit: int
    hit: dict[str, int]
    addresses_close: int
    leaks_refused: int

    @property
    def commands(self) -> dict[str, list[str]]:
        """The commands that set it, by vocabulary."""
        return commands(self.per_ip_cap, self.overrides)

    def as_json(self) -> dict[str, object]:
        """Its fields by name, with the settings and the commands that set them, by vocabulary."""
        settings = paste(self.per_ip_cap, self.overrides)
        return {**self._asdict(), "settings": settings, "commands": self.commands}


def variants(
    log: LogLevels, everything: LogLevels, found: tuple[Recommendation, Recommendation], headroom: Fraction
) -> list[Variant]:
    """The simple one, and the tight one if overrides are worth it. `log`: what they are made for, without leaks; `found`: the
    recommendations without overrides and with them."""
    simple, tight = found
    chosen = {"simple": simple, **({"tight": tight} if tight.overrides else {})}
    return [_raised(name, each, log, everything, headroom) for name, each in chosen.items()]


def _raised(name: str, observed: Recommendation, log: LogLevels, everything: LogLevels, headroom: Fraction) -> Variant:
    cap = raised(observed.per_ip_cap, headroom)
    overrides = {ip: raised(peak, headroom) for ip, peak in observed.overrides.items()}
    overrides = {ip: override for ip, override in overrides.items() if override > cap}
    refused, all_refused = (each.refused(cap, overrides) for each in (log, everything))
    over = {ip: peak for ip, peak in everything.peaks.items() if peak > overrides.get(ip, cap)}
    spared = sum(everything.peaks[ip] > cap for ip in overrides)
    hit = sum(count for peak, count in everything.all_peaks.items() if peak > cap) - spared
    near = sum(count for peak, count in everything.all_peaks.items() if raised(peak, headroom) > cap) - len(overrides)
    share = refused / log.connections if log.connections else 0.0
    return Variant(
        name=name,
        per_ip_cap=cap,
        overrides=overrides,
        without_headroom=observed.per_ip_cap,
        refused=refused,
        refused_share=share,
        addresses_hit=hit,
        hit=_highest(over),
        addresses_close=near - hit,
        leaks_refused=all_refused - refused,
    )


def raised(observed: int, headroom: Fraction) -> int:
    """The least whole number with that much room above what was observed."""
    return math.ceil(observed * (1 + headroom))


def _highest(peaks: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(peaks.items(), key=lambda each: (-each[1], each[0]))[:NAMED])
