"""The two settings that a plan recommends, with room above what the log shows, and whom each would have hit.

A cap that equals what was observed is an outage on the first day with one connection more. So both are raised by the headroom:

    simple   one cap for every entity, address or user
    tight    a lower cap, and an override for each of the few entities that need more

Invariants
  room_above   the cap has `headroom` above the one that the log alone asks for, each override above the entity's peak
  no_override_without_need   an override is above the cap; an entity that the raised cap suffices for has none
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.plan.candidates import commands, paste
from turnstile.pipeline.plan.recommend import LogLevels, Recommendation
from turnstile.quantities import plural

NAMED = 5
"""The number of the entities hit by a variant that are named."""


class Variant(NamedTuple):
    """A cap for every entity and overrides (entity -> cap); and what the two together would have refused of the
    log, and whom; connections that are left out as leaks don't count.

    `without_headroom`: the cap that the log alone asks for. `entities_hit`: how many had a connection refused, leaks among
    them; `hit`: those of them with most open at once (entity -> how many). `entities_close`: how many were not hit, and had
    less than the headroom left at their peak. `leaks_refused`: of the connections left out.
    """

    name: str
    cap: int
    overrides: dict[str, int]
    without_headroom: int
    refused: int
    refused_share: float
    entities_hit: int
    hit: dict[str, int]
    entities_close: int
    leaks_refused: int
    by: EntityType = IP

    @property
    def commands(self) -> dict[str, list[str]]:
        """The commands that set it, by vocabulary."""
        return commands(self.cap, self.overrides, self.by)

    def as_json(self) -> dict[str, object]:
        """The fields by name, with the settings and the commands that set them, by vocabulary."""
        fields = self._asdict()
        of = plural(fields.pop("by").noun, 2)
        named = {
            f"per_{self.by.name}_cap": fields.pop("cap"),
            f"{of}_hit": fields.pop("entities_hit"),
            f"{of}_close": fields.pop("entities_close"),
        }
        settings = paste(self.cap, self.overrides, self.by)
        return {**fields, **named, "settings": settings, "commands": self.commands}


def variants(
    log: LogLevels, everything: LogLevels, found: tuple[Recommendation, Recommendation], headroom: Fraction
) -> list[Variant]:
    """The simple one, and the tight one if overrides are worth it. `log`: what they are made for, without leaks; `found`: the
    recommendations without overrides and with them."""
    simple, tight = found
    chosen = {"simple": simple, **({"tight": tight} if tight.overrides else {})}
    return [_raised(name, each, log, everything, headroom) for name, each in chosen.items()]


def _raised(name: str, observed: Recommendation, log: LogLevels, everything: LogLevels, headroom: Fraction) -> Variant:
    cap = raised(observed.cap, headroom)
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
        cap=cap,
        overrides=overrides,
        without_headroom=observed.cap,
        refused=refused,
        refused_share=share,
        entities_hit=hit,
        hit=_highest(over),
        entities_close=near - hit,
        leaks_refused=all_refused - refused,
        by=log.by,
    )


def raised(observed: int, headroom: Fraction) -> int:
    """The least whole number with that much room above what was observed."""
    return math.ceil(observed * (1 + headroom))


def _highest(peaks: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(peaks.items(), key=lambda each: (-each[1], each[0]))[:NAMED])
