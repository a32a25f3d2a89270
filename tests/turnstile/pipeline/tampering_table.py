"""Which verdict each way to tamper with a journal must get. docs/audit.md lists them (`python tampering_table.py`)."""

from collections.abc import Callable

import tampered_quotas as quotas
from tampering import (
    EXCEEDED,
    HELD,
    NEEDED,
    NO_TOKENS,
    NOT_JUSTIFIED,
    UNJUDGED,
    UNKNOWN,
    Events,
    Tampering,
    a_little_later,
    acknowledged_first,
    after_the_end,
    again,
    both,
    cut,
    delete,
    deleted_and_doubled,
    edit,
    ended_in_the_middle,
    epochs_swapped,
    foreign_move,
    forged_process,
    gone,
    hidden_close,
    is_of_shard_1,
    killed,
    later,
    lowered_everywhere,
    more_units,
    nulls,
    older,
    other_cap,
    other_reason,
    other_shard,
    part,
    planted,
    process,
    process_and_what_is_told_of_it,
    process_twice,
    rate_plant,
    same_sums,
    second_coordinator,
    shuffled,
    swapped,
    to_the_other_shard,
    token_plant,
    told,
    twice_in_time,
    whole_connection_hidden,
    without,
)

TOKENS, RATES, QUOTAS = "tokens", "rates", "quotas"


def unknown(name: str, check: str, how: Callable[[Events], Events], *, journal: str = "caps") -> Tampering:
    return Tampering(name, journal, how, UNKNOWN, check)


def exceeded(name: str, check: str, how: Callable[[Events], Events], *, journal: str = "caps") -> Tampering:
    return Tampering(name, journal, how, EXCEEDED, check)


def unjustified(name: str, check: str, how: Callable[[Events], Events], *, journal: str = "caps") -> Tampering:
    return Tampering(name, journal, how, NOT_JUSTIFIED, check)


def held(name: str, how: Callable[[Events], Events], *, journal: str = "caps") -> Tampering:
    """What the journal can't show."""
    return Tampering(name, journal, how, HELD)


# fmt: off
TABLE: list[Tampering] = [
    # deleted, and the gap shows
    *(unknown(f"delete {kind}", "sequence", delete(kind)) for kind in ("admitted", "closed", "refused", "config")),
    *(unknown(f"delete {kind} of tokens", "sequence", delete(kind), journal=TOKENS) for kind in ("grant", "reclaim")),
    unknown("delete grant of a rate", "sequence", delete("grant"), journal=RATES),
    unknown("delete a process's shard_up", "sequence", delete("shard_up")),
    unknown("delete the coordinator's shard_up", "sequence", delete("shard_up", of="coordinator")),
    unknown("delete shard_lost", "sequence", delete("shard_lost", of="coordinator")),
    unknown("delete that a version was stored", "sequence", delete("config", of="coordinator", acknowledged=False)),
    unknown("delete an acknowledgement", "sequence", delete("config", of="coordinator", acknowledged=True)),
    unknown("delete a shard's ended", "processes", delete("ended")),
    unknown("delete the coordinator's ended", "processes", delete("ended", of="coordinator")),
    # cut
    unknown("cut the last events of a process", "processes", cut(last=6)),
    unknown("cut the last events of the coordinator", "processes", cut(last=3, coordinator=True)),
    unknown("cut the first events of a process", "sequence", cut(first=5)),
    unknown("cut the first events of the coordinator", "sequence", cut(first=2, coordinator=True)),
    held("cut the last events of a killed process", cut(last=2, killed=True)),
    unknown("the first third of all is gone", "sequence", part(0)),
    unknown("the middle third of all is gone", "sequence", part(1)),
    unknown("the last third of all is gone", "processes", part(2)),
    # deleted and renumbered, so that no gap shows
    exceeded("hide an admission", "conservation", delete("admitted", hide=True)),
    unknown("hide a close", "conservation", hidden_close),
    held("hide a refusal", delete("refused", hide=True)),
    held("hide a whole connection", whole_connection_hidden),
    held("hide a shard's config", delete("config", hide=True, full=False)),
    unknown("hide that a version was stored", "configuration", delete("config", hide=True, of="coordinator", acknowledged=False)),
    held("hide an acknowledgement", delete("config", hide=True, of="coordinator", acknowledged=True)),
    unknown("hide shard_lost", "processes", delete("shard_lost", hide=True, of="coordinator")),
    unknown("hide the coordinator's shard_up", "processes", delete("shard_up", hide=True, of="coordinator")),
    unknown("hide a process's shard_up", "processes", delete("shard_up", hide=True)),
    unknown("hide a shard's ended", "processes", delete("ended", hide=True)),
    exceeded("hide a grant that was used", "used_within_grants", token_plant("never granted"), journal=TOKENS),
    # whole processes and runs
    unknown("a process is gone", "processes", gone(process)),
    unknown("a killed process is gone", "processes", gone(killed)),
    unknown("the coordinator is gone", "processes", without(lambda event: event["broker"] < 0)),
    unjustified("hide a process and what the coordinator says of it", "refused_with_cause", process_and_what_is_told_of_it),
    unknown("hide all processes of a shard", "processes", without(is_of_shard_1, hide=True)),
    held("the first run of a cluster as a whole is gone", without(lambda event: event["epoch"] < 100), journal=TOKENS),
    held("the second run of a cluster as a whole is gone", without(lambda event: event["epoch"] >= 100), journal=TOKENS),
    unknown("the coordinator of the second run is gone", "processes", without(second_coordinator), journal=TOKENS),
    # there twice
    *(unknown(f"{kind} is there twice", "sequence", again(kind)) for kind in ("admitted", "closed", "refused", "config")),
    unknown("grant is there twice", "sequence", again("grant"), journal=TOKENS),
    unknown("a number has two events that differ", "sequence", again("admitted", ip="10.9.9.9")),
    unknown("a process is there twice", "sequence", process_twice),
    unknown("one is gone, another there twice", "sequence", deleted_and_doubled),
    unknown("two are gone, two there twice, numbers of one sum", "sequence", same_sums),
    exceeded("an admission twice, renumbered", "conservation", again("admitted", hide=True)),
    exceeded("a close twice, renumbered", "conservation", again("closed", hide=True)),
    # a column of an event is edited
    held("ts", edit("admitted", {"ts": 1})),
    unknown("mono_ns, earlier", "sequence", twice_in_time),
    unknown("mono_ns, later", "sequence", edit("admitted", later)),
    held("mono_ns of a close, in order", a_little_later),
    unknown("seq", "sequence", edit("admitted", {"seq": 10_000})),
    unknown("broker", "sequence", edit("admitted", {"broker": 7})),
    unknown("shard", "sequence", edit("admitted", other_shard)),
    unknown("epoch", "sequence", edit("admitted", {"epoch": 900})),
    exceeded("kind, an admission as a close", "conservation", edit("admitted", {"kind": "closed"})),
    unknown("kind, an admission as a refusal", "events", edit("admitted", {"kind": "refused"})),
    unknown("kind, one that there is not", "events", edit("admitted", {"kind": "welcomed"})),
    exceeded("conn of an admission", "conservation", edit("admitted", {"conn": 9999})),
    exceeded("ip of an admission", "conservation", edit("admitted", {"ip": "10.9.9.9"})),
    held("ip of an admission and its close", both("ip", ip="10.9.9.9")),
    exceeded("listener of a close", "conservation", edit("closed", {"listener": "OTHER"})),
    exceeded("port of a close", "conservation", edit("closed", {"port": 1})),
    unjustified("reason of a refusal", "refused_as_configured", edit("refused", other_reason)),
    held("reason of a refusal, to one that is no limit", edit("refused", {"reason": "fd_limit"})),
    unjustified("limit of a refusal", "refused_as_configured", edit("refused", {"limit": "max.connections"})),
    unjustified("limit_value of a refusal", "refused_as_configured", edit("refused", {"limit_value": 77.0})),
    exceeded("version of an admission, acknowledged away", "enforced_on_return", edit("admitted", older, version=3)),
    unknown("version of an admission, not yet stored", "stored_before_use", edit("admitted", {"version": 4}, version=2)),
    unknown("version of an admission, one that there is not", "configuration", edit("admitted", {"version": 99})),
    unjustified("version of a refusal, not yet stored", "refused_as_configured", edit("refused", {"version": 4}, version=2)),
    held("held_ms, bytes, user, client_id, api, throttle_ms", edit("closed", UNJUDGED)),
    unknown("detail of one process's config", "configuration", edit("config", other_cap)),
    exceeded("detail of every config alike, a cap lower", "ip_cap", lowered_everywhere),
    unknown("detail of a config, not JSON", "configuration", edit("config", {"detail": "{"})),
    exceeded("detail of a grant, beyond the cap", "granted_within_cap", token_plant("granted beyond the cap"), journal=TOKENS),
    exceeded("detail of a return, of what is in use", "used_within_grants", token_plant("never given back"), journal=TOKENS),
    unknown("detail of a grant, not JSON", "granted_within_cap", edit("grant", {"detail": "{"}), journal=TOKENS),
    unknown("detail of a grant, no tokens", "granted_within_cap", edit("grant", NO_TOKENS), journal=TOKENS),
    exceeded("detail of a rate's grant, more units", "ip_rate_units", more_units, journal=RATES),
    unknown("detail of a rate's grant, not JSON", "ip_rate_units", edit("grant", {"detail": "{"}), journal=RATES),
    unknown("detail of a process's shard_up, more shards", "processes", edit("shard_up", told(shards=3))),
    unknown("detail of a process's shard_up, another process", "processes", edit("shard_up", told(epoch=77))),
    unknown("detail of shard_lost, another process", "processes", edit("shard_lost", told(epoch=77), of="coordinator")),
    unknown("detail of the coordinator's shard_up, another", "processes", edit("shard_up", told(epoch=77), of="coordinator")),
    # nulls
    *(unknown(name, "events", how) for name, how in nulls("admitted", *NEEDED)),
    *(unknown(name, "events", how) for name, how in nulls("closed", "conn", "ip", "listener")),
    *(unknown(name, "events", how) for name, how in nulls("refused", "ip", "reason")),
    *(unjustified(name, "refused_as_configured", how) for name, how in nulls("refused", "version", "limit", "limit_value")),
    *(unknown(name, "events", how) for name, how in nulls("config", "version", "detail")),
    *(unknown(name, "events", how, journal=TOKENS) for name, how in nulls("grant", "detail")),
    # swapped and moved
    unknown("seq of two events swapped", "sequence", swapped("seq")),
    unknown("mono_ns of two events swapped", "sequence", swapped("mono_ns")),
    unknown("epochs of two processes swapped", "processes", epochs_swapped),
    exceeded("an admission moved to another process", "conservation", to_the_other_shard("admitted")),
    held("a connection moved to another process", to_the_other_shard("admitted", "closed")),
    unknown("a grant moved to a shard that is not its home", "granted_within_cap", foreign_move, journal=TOKENS),
    held("rows in another order in their part", shuffled),
    # forged
    exceeded("one more connection than the cap of its address", "ip_cap", planted("address")),
    exceeded("one more than its listener's cap", "listener_cap", planted("external")),
    exceeded("one more than the broker's cap", "broker_cap", planted("broker")),
    exceeded("more in use than was granted", "used_within_grants", token_plant("used twice"), journal=TOKENS),
    exceeded("more at once than the rate of their address", "ip_rate", rate_plant("address"), journal=RATES),
    exceeded("more at once than their listener's rate", "listener_rate", rate_plant("listener"), journal=RATES),
    exceeded("more at once than the broker's rate", "broker_rate", rate_plant("broker"), journal=RATES),
    exceeded("more at once than a core's rate", "core_rate", rate_plant("core"), journal=RATES),
    exceeded("more at once than an override of a core's rate", "core_rate_override", rate_plant("core override"), journal=RATES),
    exceeded("one more unit than the rate of its address", "ip_rate_units", rate_plant("unit of an address"), journal=RATES),
    exceeded("one more unit than its listener's rate", "listener_rate_units", rate_plant("unit of a listener"), journal=RATES),
    exceeded("one more unit than the broker's rate", "listener_rate_units", rate_plant("unit of a broker"), journal=RATES),
    unjustified("a refusal with room", "refused_with_cause", planted("refused by the broker, with room")),
    unjustified("a refusal by an address's rate that none came near", "refused_with_cause",
                rate_plant("refused by an address's rate"), journal=RATES),
    unjustified("a refusal by a core's rate that none came near", "refused_with_cause",
                rate_plant("refused by a core's rate"), journal=RATES),
    unjustified("a refusal by an override that none came near", "refused_with_cause",
                rate_plant("refused by an override"), journal=RATES),
    unknown("a process that the coordinator did not see", "processes", forged_process),
    unknown("an acknowledgement before the change was stored", "configuration", acknowledged_first),
    unknown("ended in the middle of a process", "processes", ended_in_the_middle),
    unknown("an event after ended", "processes", after_the_end),
]
TABLE += [
    each._replace(journal=QUOTAS)
    for each in (
        # client quotas: deleted, hidden, there twice
        unknown("delete charge", "sequence", quotas.remove(quotas.a_charge, hide=False)),
        unknown("delete throttled", "sequence", quotas.remove(quotas.throttle, hide=False)),
        unknown("delete meter", "sequence", quotas.remove(quotas.state, hide=False)),
        unjustified("hide a charge that throttled", "quota_throttles", quotas.remove(quotas.throttling)),
        unjustified("hide a charge within its quota", "quota_charges", quotas.remove(quotas.within)),
        held("hide the last charge of a meter", quotas.remove(quotas.last_within)),
        exceeded("hide that a client was throttled", "quota_throttles", quotas.remove(quotas.throttle)),
        exceeded("hide what a meter went on from", "quota_charges", quotas.remove(quotas.state)),
        unjustified("hide what another shard told of a meter", "quota_charges", quotas.remove(quotas.told)),
        unknown("charge is there twice", "sequence", quotas.doubled(quotas.a_charge, hide=False)),
        unknown("a charge has two rows that differ", "sequence", quotas.doubled(quotas.a_charge, hide=False, bytes=1)),
        exceeded("a charge twice, renumbered", "quota_charges", quotas.doubled(quotas.within, hide=True)),
        unjustified("throttled twice, renumbered", "quota_throttles", quotas.doubled(quotas.throttle, hide=True)),
        exceeded("what another shard told twice, renumbered", "quota_charges", quotas.doubled(quotas.told, hide=True)),
        # a column of a charge is edited
        exceeded("bytes of a charge, more", "quota_charges", quotas.edit(quotas.within, quotas.add(bytes=1_000_000))),
        unjustified("bytes of a charge, less", "quota_charges", quotas.edit(quotas.within, {"bytes": 1})),
        exceeded("bytes of a charge of handler time, more", "quota_charges",
            quotas.edit(quotas.time, quotas.add(bytes=10**15))),
        unjustified("throttle_ms of a charge, 1 ms more", "quota_charges",
            quotas.edit(quotas.throttling, quotas.add(throttle_ms=1))),
        exceeded("throttle_ms of a charge, 1 ms less", "quota_charges",
            quotas.edit(quotas.throttling, quotas.add(throttle_ms=-1))),
        exceeded("throttle_ms of a charge, none", "quota_charges", quotas.edit(quotas.throttling, {"throttle_ms": 0})),
        exceeded("throttle_ms of a charge within its quota", "quota_throttles",
            quotas.edit(quotas.within, {"throttle_ms": 500})),
        exceeded("limit_value of a charge, higher", "quota_in_force", quotas.edit(quotas.within, quotas.add(limit_value=7))),
        unjustified("limit_value of a charge, lower", "quota_in_force",
            quotas.edit(quotas.last_within, quotas.add(limit_value=-1))),
        unknown("limit of a charge, one that there is not", "events",
            quotas.edit(quotas.a_charge, {"limit": "byte_rate"})),
        exceeded("client_id of a charge that throttled", "quota_in_force",
            quotas.edit(quotas.throttling, quotas.another_client)),
        unknown("reason of a charge, its home stood in for itself", "quota_one_meter",
            quotas.edit(quotas.within, {"reason": "stand_in"})),
        exceeded("reason of a charge, a stand-in is said to be the home", "quota_one_meter",
            quotas.edit(quotas.stand_in, {"reason": None})),
        unknown("mono_ns of a charge, earlier than the one before", "quota_charges",
            quotas.edit(quotas.within, quotas.add(mono_ns=-9_000_000_000))),
        exceeded("version of a charge, acknowledged away", "quota_in_force",
            quotas.edit(quotas.charged_after_a_change, {"version": 1})),
        unknown("version of a charge, not yet stored", "quota_in_force",
            quotas.edit(quotas.before_a_change, {"version": 2})),
        unknown("version of a charge, one that there is not", "configuration",
            quotas.edit(quotas.a_charge, {"version": 99})),
        unjustified("detail of a charge, asked by another shard", "quota_throttles",
            quotas.edit(quotas.throttling, quotas.another_asker)),
        unknown("detail of a charge, asked by a shard that there is not", "quota_one_meter",
            quotas.edit(quotas.within, quotas.said(asker=9))),
        unknown("detail of a charge, shared though its quota names it", "quota_one_meter",
            quotas.edit(quotas.within, quotas.said(shared=True))),
        exceeded("detail of a refused mutation, accepted", "quota_charges",
            quotas.edit(quotas.mutation(strict=True), quotas.said(accepted=True))),
        unjustified("detail of an accepted charge, refused", "quota_charges",
            quotas.edit(quotas.within, quotas.said(accepted=False))),
        unknown("detail of a charge, not JSON", "quota_charges", quotas.edit(quotas.a_charge, {"detail": "{"})),
        unknown("detail of a charge, of another shape", "quota_charges",
            quotas.edit(quotas.a_charge, {"detail": '{"asker":"1"}'})),
        # throttled
        exceeded("throttle_ms of throttled, more", "quota_throttles",
            quotas.edit(quotas.throttle, quotas.add(throttle_ms=1))),
        exceeded("throttle_ms of throttled, less", "quota_throttles",
            quotas.edit(quotas.throttle, quotas.add(throttle_ms=-1))),
        exceeded("bytes of throttled", "quota_throttles", quotas.edit(quotas.throttle, quotas.add(bytes=1))),
        exceeded("client_id of throttled", "quota_throttles", quotas.edit(quotas.throttle, quotas.another_client)),
        exceeded("mono_ns of throttled", "quota_throttles", quotas.edit(quotas.throttle, quotas.add(mono_ns=1_000_000))),
        exceeded("reason of throttled", "quota_throttles", quotas.edit(quotas.throttle, {"reason": "stand_in"})),
        unjustified("limit_value of throttled", "quota_throttles", quotas.edit(quotas.throttle, quotas.add(limit_value=1))),
        exceeded("throttled without limit", "quota_throttles", quotas.edit(quotas.throttle, {"limit": None})),
        # what meters go on from
        unjustified("a note that a meter goes on from more than was recorded", "quota_carried_on", quotas.fuller),
        exceeded("a note that a meter goes on from nothing", "quota_carried_on", quotas.emptied),
        exceeded("a note that all meters begin anew", "quota_charges", quotas.reset),
        exceeded("detail of what another shard told, more", "quota_charges", quotas.edit(quotas.told, quotas.more_told)),
        unknown("detail of meter, not JSON", "quota_charges", quotas.edit(quotas.state, {"detail": "{"})),
        unknown("detail of meter, no state", "quota_charges", quotas.edit(quotas.state, {"detail": '{"samples":[]}'})),
        # nulls
        *(unknown(name, "events", how) for name, how in quotas.nulls(
            "charge", quotas.a_charge, "limit", "limit_value", "bytes", "throttle_ms", "version", "detail")),
        *(unknown(name, "events", how) for name, how in quotas.nulls("meter", quotas.state, "version", "detail")),
        # moved and forged
        exceeded("a charge moved to a shard that is not its home", "quota_one_meter", quotas.moved),
        exceeded("a client is charged by a second meter", "quota_one_meter", quotas.second_meter),
        unjustified("throttled by no meter", "quota_throttles", quotas.throttled_by_none),
        exceeded("detail of every config alike, quotas lower", "quota_in_force", quotas.requota(0.5)),
        unjustified("detail of every config alike, quotas higher", "quota_in_force", quotas.requota(2.0)),
    )
]
# fmt: on


def rows() -> list[str]:
    """The table of docs/audit.md."""
    return [f"| {each.name} | {each.verdict} |{each.check and f' `{each.check}`'} |" for each in TABLE]


if __name__ == "__main__":
    print("\n".join(rows()))
