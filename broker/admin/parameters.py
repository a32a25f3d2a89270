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


_OBSERVED = _flag("observed", False, "Count what observed limits would have refused, not what was refused.")


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


_CALLER = "The author of the change, for the history."
_BROKER = Parameter(
    "broker",
    "query",
    "The id of one broker; without it, the whole cluster.",
    {"type": "integer", "minimum": 0},
    lambda request: request.query_params.get("broker", ""),
)

BrokerText: TypeAlias = Annotated[str, _BROKER]
"""The text that was given, "" if none was: `_broker` of settings_api checks it."""
BrokerNumber: TypeAlias = Annotated[int, _whole("broker", 0, 0, 2**31 - 1, "The id of a broker.")]
SettingName: TypeAlias = Annotated[str | None, _text("key", "Only this setting.")]
IncludeDefaults: TypeAlias = Annotated[
    bool, _flag("include_defaults", True, "Also the settings with their default values.")
]
DryRun: TypeAlias = Annotated[bool, _flag("dry_run", False, "Only check the change.")]
HistoryLimit: TypeAlias = Annotated[int, _whole("limit", 100, 1, 1000, "The most changes to return.")]
Before: TypeAlias = Annotated[int, _whole("before", _MOST, 1, _MOST, "Only changes before this version.")]
MostLimits: TypeAlias = Annotated[
    int, _whole("limit", 50, 1, 200, "The most limits of addresses and clients to return.")
]
ListenerName: TypeAlias = Annotated[str | None, _text("listener", "The name of a listener; without it, all listeners.")]
Ip: TypeAlias = Annotated[str | None, _text("ip", "An IP address.")]
UserName: TypeAlias = Annotated[str | None, _text("user", "The name of a user.")]
ClientId: TypeAlias = Annotated[str | None, _text("client-id", "A client id.")]
ObserveQuotas: TypeAlias = Annotated[bool, _flag("observe", False, "Observed client quotas instead of enforced ones.")]
Observe: TypeAlias = Annotated[
    bool, _flag("observe", False, "Observed limits on connections instead of enforced ones.")
]
Observed: TypeAlias = Annotated[bool, _OBSERVED]
By: TypeAlias = Annotated[
    RefusedBy,
    Parameter(
        "by",
        "query",
        "The field by which connections are counted; `limit` only with `observed`.",
        {"type": "string", "enum": list(get_args(RefusedBy)), "default": "reason"},
        _refused_by,
    ),
]
Since: TypeAlias = Annotated[
    float,
    Parameter(
        "since",
        "query",
        "Points of `series` after this time, in Unix seconds.",
        {"type": "number", "default": 0},
        _since,
    ),
]
Minutes: TypeAlias = Annotated[
    int, _whole("minutes", 5, 1, 30, "The length of `series` in minutes; beyond 5, in steps of 6 s.")
]
ClientInstanceId: TypeAlias = Annotated[
    str, _of_path("client_instance_id", "The id of a client instance that pushes telemetry.")
]
PageName: TypeAlias = Annotated[str, _of_path("name", "The name of the file.")]
Who: TypeAlias = Annotated[str, Parameter(WHO, "header", _CALLER, {"type": "string"}, caller)]
NamedCaller: TypeAlias = Annotated[
    str, Parameter(WHO, "header", _CALLER, {"type": "string"}, _named_caller, required=True)
]
"""The caller of a route that a page of another site must not reach (require_caller)."""
AtAdmin: TypeAlias = Annotated[str, Parameter("", "", "", {}, at_admin)]
"""The option by which a command finds this API, for sentences."""
