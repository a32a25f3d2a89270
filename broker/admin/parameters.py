"""The parameters that routes of the admin API take: of the query, the path and the headers. Each is read and described here."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request

from broker.admin.cluster_answers import RefusedBy
from broker.admin.requests import WHO, at_admin, caller, is_number, require_caller
from broker.admin.route import Parameter

_MOST = 2**53
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _text(name: str, says: str) -> Parameter:
    return Parameter(name, "query", says, {"type": "string"}, lambda request: request.query_params.get(name))


def _flag(name: str, default: bool, says: str) -> Parameter:
    def read(request: Request) -> bool:
        text = request.query_params.get(name, str(default))
        if text.lower() not in _FLAGS:
            raise HTTPException(400, f"{name} cannot be {text!r}: it must be true or false.")
        return _FLAGS[text.lower()]

    return Parameter(name, "query", says, {"type": "boolean", "default": default}, read)


def _whole(name: str, default: int, low: int, high: int, says: str) -> Parameter:
    def read(request: Request) -> int:
        text = request.query_params.get(name)
        if text is None:
            return default
        if not (is_number(text) and low <= int(text) <= high):
            raise HTTPException(400, f"{name} cannot be {text!r}: it must be a whole number from {low} to {high}.")
        return int(text)

    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return Parameter(name, "query", says, schema, read)


_OBSERVED = _flag("observed", False, "What limits that are observed instead of enforced would have refused.")


def _refused_by(request: Request) -> str:
    text = request.query_params.get("by", "reason")
    choices = [each for each in get_args(RefusedBy) if each != "limit" or _OBSERVED.read(request)]
    if text not in choices:
        raise HTTPException(400, f"by cannot be {text!r}: it must be one of {', '.join(choices)}.")
    return text


def _since(request: Request) -> float:
    try:
        return float(request.query_params.get("since", "0"))
    except ValueError:
        raise HTTPException(400, "since must be Unix seconds.") from None


def _of_path(name: str, says: str) -> Parameter:
    return Parameter(name, "path", says, {"type": "string"}, lambda request: request.path_params[name], required=True)


def _named_caller(request: Request) -> str:
    require_caller(request)
    return caller(request)


_CALLER = "Whom the history of changes is to name."
_BROKER = Parameter(
    "broker",
    "query",
    "The id of one broker; without it, the whole cluster.",
    {"type": "integer", "minimum": 0},
    lambda request: request.query_params.get("broker", ""),
)

BrokerText: TypeAlias = Annotated[str, _BROKER]
"""As it was given, "" if it was not: broker_id of settings_api checks it."""
BrokerNumber: TypeAlias = Annotated[int, _whole("broker", 0, 0, 2**31 - 1, "The id of a broker.")]
SettingName: TypeAlias = Annotated[str | None, _text("key", "One setting alone.")]
IncludeDefaults: TypeAlias = Annotated[bool, _flag("include_defaults", True, "Also the settings that nobody has set.")]
DryRun: TypeAlias = Annotated[bool, _flag("dry_run", False, "Only check whether it could be set.")]
HistoryLimit: TypeAlias = Annotated[int, _whole("limit", 100, 1, 1000, "How many changes, at most.")]
Before: TypeAlias = Annotated[int, _whole("before", _MOST, 1, _MOST, "Only changes before this version.")]
MostLimits: TypeAlias = Annotated[
    int, _whole("limit", 50, 1, 200, "How many limits of addresses and clients, at most.")
]
ListenerName: TypeAlias = Annotated[str | None, _text("listener", "A listener's name; without it, all of them.")]
Ip: TypeAlias = Annotated[str | None, _text("ip", "An address: the limits that hold for it.")]
UserName: TypeAlias = Annotated[str | None, _text("user", "A user: the quotas that hold for it.")]
ClientId: TypeAlias = Annotated[str | None, _text("client-id", "A client id: the quotas that hold for it.")]
ObserveQuotas: TypeAlias = Annotated[
    bool, _flag("observe", False, "Of client quotas that are observed instead of enforced.")
]
Observe: TypeAlias = Annotated[
    bool, _flag("observe", False, "Of limits of connections that are observed instead of enforced.")
]
Observed: TypeAlias = Annotated[bool, _OBSERVED]
By: TypeAlias = Annotated[
    RefusedBy,
    Parameter(
        "by",
        "query",
        "What is counted apart; `limit` only of observed caps.",
        {"type": "string", "enum": list(get_args(RefusedBy)), "default": "reason"},
        _refused_by,
    ),
]
Since: TypeAlias = Annotated[
    float,
    Parameter("since", "query", "`series` begins after it, in Unix seconds.", {"type": "number", "default": 0}, _since),
]
Minutes: TypeAlias = Annotated[int, _whole("minutes", 5, 1, 30, "How many minutes of it; beyond 5, in steps of 6 s.")]
ClientInstanceId: TypeAlias = Annotated[str, _of_path("client_instance_id", "Of a client that pushes telemetry.")]
PageName: TypeAlias = Annotated[str, _of_path("name", "A file's name.")]
Who: TypeAlias = Annotated[str, Parameter(WHO, "header", _CALLER, {"type": "string"}, caller)]
NamedCaller: TypeAlias = Annotated[
    str, Parameter(WHO, "header", _CALLER, {"type": "string"}, _named_caller, required=True)
]
"""Of a route that a page of another site must not reach (require_caller)."""
AtAdmin: TypeAlias = Annotated[str, Parameter("", "", "", {}, at_admin)]
"""The option by which a command finds this API, for sentences."""
