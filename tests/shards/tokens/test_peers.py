"""peers.py: which peers are up, lost or dead, and which version each has applied."""

from shards.tokens.peers import NEVER, Peers


def make_peers(shards: int = 3, *up: int) -> Peers:
    peers = Peers(0, shards, epoch=5)
    for peer in up:
        peers.mark_up(peer, 10 + peer)
    return peers


def test_a_lost_peer_keeps_its_epoch_and_a_dead_one_loses_it() -> None:
    peers = make_peers(3, 1)
    assert peers.is_up(1) and peers.is_up(0) and not peers.is_up(2)
    peers.mark_lost(1)
    assert not peers.is_up(1) and not peers.is_dead(1) and peers.epoch_of(1) == 11
    peers.mark_dead(1)
    assert peers.is_dead(1) and peers.epoch_of(1) is None
    peers.mark_up(1, 20)
    assert peers.is_up(1) and not peers.is_dead(1)


def test_items_for_a_lost_peer_are_dropped() -> None:
    peers = make_peers(2, 1)
    peers.outbox.post(1, ("sync", 1))
    peers.mark_lost(1)
    peers.mark_up(1, 11)
    assert peers.outbox.queued(1) == []


def test_the_floor_is_what_every_live_peer_has_applied() -> None:
    peers = make_peers(3)
    assert peers.applied_everywhere == NEVER  # no peer is known
    peers.mark_up(1, 11)
    peers.mark_up(2, 12)
    peers.note_applied(1, 4)
    assert peers.applied_everywhere == NEVER
    peers.note_applied(2, 3)
    assert peers.applied_everywhere == 3
    peers.mark_dead(2)
    assert peers.applied_everywhere == 4
    peers.mark_up(2, 20)
    assert peers.applied_everywhere == NEVER


def test_a_lone_shard_agrees_with_itself() -> None:
    assert Peers(0, 1, epoch=1).have_confirmed(99)


def test_a_version_is_agreed_when_all_have_it_and_know_that_we_have() -> None:
    peers = make_peers(3, 1, 2)
    for peer in (1, 2):
        peers.note_applied(peer, 7)
    assert not peers.have_confirmed(7)
    peers.confirmed[1] = peers.confirmed[2] = 7
    assert peers.have_confirmed(7) and not peers.have_confirmed(8)
