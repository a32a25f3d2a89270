"""`turnstile up`: decides the plan, binds, forks, waits until everything answers, says so, and supervises."""

import contextlib
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from broker.metrics.shard_counters import Layout, ShardCounters
from broker.process.cluster_names import HeldName
from broker.process.cluster_restart import TakenOver, start_again, taken_over
from broker.process.data_dir import cluster_id, hold, make_data_dir, scram_secret
from broker.process.launch_options import LaunchOptions
from broker.process.start_reports import ReportPipe, await_ready, end_reports, system_fault
from broker.runtime import collector
from broker.serve.tls import context_of
from shards.config.cluster_plan import COORDINATOR_MEMBER, ClusterPlan, ListenerEndpoint
from shards.config.config_state import ConfigState
from shards.config.proxy_option import proxy_notes, proxy_option
from shards.config.setting_changes import observed_delta, static_settings
from shards.errors import CannotStart
from shards.limits.quota_callback import check_callback
from shards.settings.config_def import BROKER
from shards.settings.errors import TurnstileError
from shards.supervisor.binding import MeshAddresses, bind_listeners, bind_tcp
from shards.supervisor.epochs import Epochs
from shards.supervisor.owner import Owner
from shards.supervisor.supervisor import AGAIN, ENDING, Supervisor

_BACKLOG = "socket.listen.backlog.size"
_PROGRESS = "\0"
"""Stands before a line of a detached cluster that is shown at once, before the others."""
_TOKEN_SECRET = "delegation.token.secret.key"


def up(asked: LaunchOptions, *, detach: bool) -> int:
    """Runs the cluster until it is told to end; with `detach`, returns once it answers. Raises CannotStart."""
    try:
        return _launch(asked) if not detach else _launch_detached(asked)
    except OSError as fault:
        raise CannotStart(f"the cluster can't start: {system_fault(fault) or fault}") from None


def _launch(asked: LaunchOptions) -> int:
    return _Launch(asked).run(sys.stdout)


def _launch_detached(asked: LaunchOptions) -> int:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _detached(asked, write_end)
    os.close(write_end)
    try:
        print(_first_words(read_end), end="")
    except KeyboardInterrupt:
        # The cluster has a session of its own, which a terminal's Ctrl-C does not reach.
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    return 0


def _first_words(read_end: int) -> str:
    """The report of a detached cluster once it answers. Raises CannotStart with what it says otherwise."""
    lines: list[str] = []
    with os.fdopen(read_end) as reports:
        # Not until the end of the stream: the cluster's processes have inherited its other end.
        for line in reports:
            if line == "ok\n":
                return "".join(lines)
            if line.startswith(_PROGRESS):
                _tell(line.removeprefix(_PROGRESS).rstrip())
            else:
                lines.append(line)
    raise CannotStart("".join(lines).strip() or "the cluster ended before it answered")


def _detached(asked: LaunchOptions, report: int) -> None:
    """The detached side: a session of its own, whose words go to the caller until it answers, then to a log file."""
    os.setsid()
    code = 1
    with os.fdopen(report, "w") as report_file:
        try:
            cluster = _Launch(asked, lambda sentence: print(f"{_PROGRESS}{sentence}", file=report_file, flush=True))
            log = os.open(cluster.data_dir / "turnstile.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in ((0, null), (1, log), (2, log)):
                os.dup2(source, target)
            code = cluster.run(report_file, on_ready=lambda: _say_ok(report_file))
        except TurnstileError as fault:
            report_file.write(f"{fault}\n")
        except OSError as fault:
            report_file.write(f"the cluster can't start: {system_fault(fault) or fault}\n")
        except BaseException as fault:
            report_file.write(f"{type(fault).__name__}: {fault}\n")
            raise
        finally:
            if not report_file.closed:
                report_file.close()
            os._exit(code)


def _say_ok(report_file: TextIO) -> None:
    report_file.write("ok\n")
    report_file.close()


class Ended(NamedTuple):
    """The end of a run of a cluster. `kept`: what the next one takes over; None where it was told to end."""

    code: int
    kept: TakenOver | None


class _Bound(NamedTuple):
    """The plan of a cluster whose sockets are bound, and the folder of those of the mesh."""

    plan: ClusterPlan
    addresses: MeshAddresses


class _Launch:
    """A data directory held for this process, and the cluster in it."""

    def __init__(self, asked: LaunchOptions, say_progress: Callable[[str], None] | None = None) -> None:
        """`say_progress`: for a person who waits for a start that takes long."""
        self._asked = asked
        self._say_progress = say_progress or _tell
        self._before = taken_over()
        self._temporary = asked.data_dir is None
        self._backlog = int(static_settings(asked.settings).get(f"/{_BACKLOG}", str(BROKER[_BACKLOG].default)))
        # So that a temporary directory never outlives a Ctrl-C.
        signal.pthread_sigmask(signal.SIG_BLOCK, {AGAIN, *ENDING})
        self._name = HeldName(asked.name) if asked.name is not None else None
        self.data_dir = make_data_dir(asked.data_dir or self._before.data_dir)
        try:
            self._lock = hold(self.data_dir)
        except BaseException:
            self._clean_up()
            raise

    def run(self, out: TextIO, on_ready: Callable[[], None] = lambda: None) -> int:
        """Runs the cluster until it is told to end; says to `out` what was started, then calls `on_ready`. Where it is told to
        start again, that is another run of this program, in this process."""
        kept: TakenOver | None = None
        try:
            code, kept = self._run(out, on_ready)
        except BaseException as fault:
            traceback.clear_frames(
                fault.__traceback__
            )  # the sockets in it may be all descriptors, and cleaning up needs some
            raise
        finally:
            self._clean_up(kept)
        if kept is not None:
            start_again(kept)
        return code

    def _clean_up(self, kept: TakenOver | None = None) -> None:
        if self._name is not None:
            self._name.give_up()
        if self._temporary and kept is None:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _run(self, out: TextIO, on_ready: Callable[[], None]) -> Ended:
        plan, addresses = self._plan()
        with collector.paused():
            from broker.process.children import children_of, import_for, make_board

        pipe = ReportPipe(*os.pipe())
        board = make_board(plan)
        children = children_of(plan, addresses, board, pipe, self._backlog)
        epochs = Epochs(self.data_dir / "epoch")
        owner = Owner(pid=self._asked.ends_with_pid, stdin=self._asked.ends_with_stdin)
        supervisor = Supervisor(children, epochs, tell=_tell, board=board, owner=owner)
        try:
            supervisor.start(import_for)
            report = await_ready(pipe.read_end, 1 + plan.brokers * plan.shards, supervisor.pids, self._say_progress)
        except BaseException:
            supervisor.stop()
            raise
        end_reports(pipe)
        if self._name is not None:
            self._name.tell(plan.admin_url, [str(each) for each in plan.endpoints], self.data_dir)
        self._say(out, plan, report)
        if self._asked.ready_line is not None:
            print(self._asked.ready_line, file=out, flush=True)
        on_ready()
        code = supervisor.run()
        return Ended(code, TakenOver.of(plan, is_temporary=self._temporary) if supervisor.starts_again else None)

    def _plan(self) -> _Bound:
        asked = self._asked
        endpoints, client_sockets = bind_listeners(
            asked.listeners, asked.brokers, asked.shards, backlog=self._backlog, ports=self._before.ports
        )
        for endpoint in endpoints:
            context_of(endpoint)  # a certificate that can't be used is said before anything is started
        host, port = asked.admin
        admin = bind_tcp(host, port or self._before.admin_port, "the admin API", shared=False, option="--admin-port")
        admin.listen(128)
        plan = ClusterPlan(
            brokers=asked.brokers,
            shards=asked.shards,
            data_dir=self.data_dir,
            cluster_id=cluster_id(self.data_dir),
            scram_secret=scram_secret(self.data_dir),
            token_secret=dict(asked.settings).get(_TOKEN_SECRET, "").strip().encode(),
            endpoints=endpoints,
            admin=admin.getsockname()[:2],
            admin_token=asked.admin_token,
            name=asked.name,
            static=self._static(endpoints),
            topics=asked.topics,
            quotas=asked.quotas,
            users=asked.users,
            observed=asked.observed,
            override_stored=asked.override_stored,
            journal_parts=not self._temporary if asked.journal_parts is None else asked.journal_parts,
            client_sockets=client_sockets,
            admin_socket=admin,
        )
        plan.run_dir.mkdir(mode=0o700, exist_ok=True)
        layout = Layout(endpoint.listener for endpoint in plan.endpoints)
        for broker, shard in plan.members():
            ShardCounters.create(ShardCounters.path(plan.run_dir, broker, shard), layout)
        addresses = MeshAddresses(plan.run_dir)
        plan.mesh_sockets = addresses.bind([COORDINATOR_MEMBER, *plan.members()])
        return _Bound(plan, addresses)

    def _static(self, endpoints: Sequence[ListenerEndpoint]) -> dict[str, str]:
        """The command line's settings. Raises ConfigInvalid, also for a cap that can't be observed beside them."""
        static = static_settings(self._asked.settings, endpoints)
        check_callback(static)
        observed_delta(
            ConfigState(self._asked.brokers, static), [("", name, text) for name, text in self._asked.observed]
        )
        return static

    def _say(self, out: TextIO, plan: ClusterPlan, report: Mapping[str, Any]) -> None:
        """The addresses of a cluster that was started, for a person or as one JSON line."""
        admin = plan.admin_url
        if self._asked.json_lines:
            started = {
                "pid": os.getpid(),
                "admin": admin,
                "listeners": [{"broker": e.broker, "name": e.listener, "address": str(e)} for e in plan.endpoints],
                "shards": plan.shards,
                "data_dir": str(plan.data_dir),
                "limits": report["limits"],
                "overruled": report["overruled"],
                "notes": [*self._asked.notes, *report["notes"], *_notes(plan)],
            }
            print(json.dumps(started), file=out, flush=True)
            return
        size = f"{_count(plan.brokers, 'broker')}, {_count(plan.shards, 'shard')} each"
        lines = [f"Turnstile is up: {size} (pid {os.getpid()})"]
        lines += [f"  {endpoint.listener:<12} {endpoint}   broker {endpoint.broker}" for endpoint in plan.endpoints]
        lines += [f"  {'admin':<12} {admin}"]
        lines += [f"  {'data':<12} {plan.data_dir}{'   (temporary, removed at the end)' if self._temporary else ''}"]
        lines += [f"  {'limit':<12} {name} = {value}" for name, value in report["limits"].items()]
        if not report["limits"]:
            command = f"turnstile config set kafka_connections_max_per_ip 50{plan.at_admin}"
            lines += [f"  {'limits':<12} none set: {command}"]
        lines += [f"  {'note':<12} {note}" for note in (*self._asked.notes, *report["notes"], *_notes(plan))]
        lines += [f"  {'not in force':<12} {sentence}" for sentence in report["overruled"]]
        print("\n".join(lines), file=out, flush=True)


def _notes(plan: ClusterPlan) -> list[str]:
    """Notes on logins that protect less than they seem to, and on clients that may announce themselves as others."""
    options = {each.listener: proxy_option(each.listener, each.options) for each in plan.endpoints}
    notes = [note for name, option in options.items() if option is not None for note in proxy_notes(name, option)]
    sasl = {each.listener for each in plan.endpoints if "sasl" in each.options}
    free = {each.listener for each in plan.endpoints} - sasl
    if not sasl or not free:
        return notes
    without, with_login = " and ".join(sorted(free)), " and ".join(sorted(sasl))
    return [*notes, f"clients of {without} need no login, and can create the users that {with_login} asks for"]


def _tell(sentence: str) -> None:
    with contextlib.suppress(OSError):  # the reader may have gone; the cluster goes on
        print(f"turnstile: {sentence}", file=sys.stderr, flush=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
