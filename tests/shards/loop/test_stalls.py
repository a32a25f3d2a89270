"""What counts as a stall, and what others had the CPUs for does not."""

from shards.loop.stalls import STALL_NS, Stall, Stalls, cpu_waited_ns


def test_what_a_process_waited_for_a_cpu_is_no_stall() -> None:
    waited_ns = [0]
    told = list[Stall]()
    stalls = Stalls(told.append, lambda: waited_ns[0])
    stalls.note("first", STALL_NS + 1)
    waited_ns[0] += 3 * STALL_NS
    stalls.note("second", 3 * STALL_NS + 5)
    assert (stalls.count, stalls.longest_ns, told) == (1, STALL_NS + 1, [Stall("first", STALL_NS + 1)])
    waited_ns[0] += STALL_NS
    stalls.look()
    stalls.note("third", 2 * STALL_NS)
    assert (stalls.count, stalls.longest_ns, told[1:]) == (2, 2 * STALL_NS, [Stall("third", 2 * STALL_NS)])


def test_the_kernel_tells_how_long_a_process_waited() -> None:
    assert cpu_waited_ns() >= 0
