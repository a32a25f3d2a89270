"""The client in C#. It is untried: nothing compiles it here."""

from __future__ import annotations

from api_model import ApiModel, Field, Kind, Operation, Record, camel, pascal

FILE = "dotnet/AdminApi.cs"
_SCALARS = {"string": "string", "word": "string", "integer": "long", "number": "double", "boolean": "bool"}
_HEAD = """// A client of Turnstile's admin API, which needs .NET 8 alone. UNTRIED: it was never compiled, as there was no dotnet.
// Generated from the API's OpenAPI document by `make clients`: changes belong there.
#nullable enable
using System.Net.Http.Headers;
using System.Net.Http.Json;
using System.Text.Json;
using System.Text.Json.Serialization;

/// <summary>The API answered with an error: Status is HTTP's, the message its body.</summary>
public sealed class AdminRefusedException(int status, string told) : Exception($"{status}: {told}")
{
    public int Status { get; } = status;
}

/// <summary>Calls of the admin API of one cluster; who is what the history of changes names the caller.</summary>
public sealed class AdminApi : IDisposable
{
    private static readonly JsonSerializerOptions Json = new()
    {
        PropertyNamingPolicy = JsonNamingPolicy.SnakeCaseLower,
        DefaultIgnoreCondition = JsonIgnoreCondition.WhenWritingNull,
    };

    private readonly HttpClient http = new();
    private readonly string url;

    public AdminApi(string url, string? token = null, string who = "a client in .NET")
    {
        this.url = url;
        http.DefaultRequestHeaders.Add("x-turnstile-who", who);
        if (token is not null) http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", token);
    }

    public void Dispose() => http.Dispose();

    private async Task<string> TextAsync(
        string method, string path, object? body = null, params (string Name, object? Value)[] query)
    {
        var given = query.Where(each => each.Value is not null).Select(each => $"{each.Name}={Encoded(each.Value!)}");
        var asked = string.Join("&", given);
        using var request = new HttpRequestMessage(new HttpMethod(method), url + path + (asked == "" ? "" : "?" + asked));
        if (body is not null) request.Content = JsonContent.Create(body, body.GetType(), options: Json);
        using var response = await http.SendAsync(request);
        var told = await response.Content.ReadAsStringAsync();
        return response.IsSuccessStatusCode ? told : throw new AdminRefusedException((int)response.StatusCode, told);
    }

    private async Task<T> JsonAsync<T>(
        string method, string path, object? body = null, params (string Name, object? Value)[] query) =>
        JsonSerializer.Deserialize<T>(await TextAsync(method, path, body, query), Json)!;

    private static string Encoded(object value) =>
        Uri.EscapeDataString(value is bool yes ? (yes ? "true" : "false") : FormattableString.Invariant($"{value}"));
"""


def written(api: ApiModel) -> dict[str, str]:
    """The files by their paths."""
    methods = [line for operation in api.operations for line in ("", *_method(operation))]
    records = [line for record in api.records for line in ("", *_record(record))]
    return {FILE: "\n".join([_HEAD.rstrip(), *methods, "}", *records]) + "\n"}


def _method(operation: Operation) -> list[str]:
    given = [f"string {camel(each.name)}" for each in operation.in_path]
    given += [f"{_type(operation.body)} body"] if operation.body else []
    given += [f"{_type(each.kind)}? {camel(each.name)} = null" for each in operation.in_query]
    path = operation.path
    for each in operation.in_path:
        path = path.replace(f"{{{each.name}}}", f"{{Encoded({camel(each.name)})}}")
    words = [f'"{operation.method}"', f'{"$" if operation.in_path else ""}"{path}"']
    words += ["body" if operation.body else "null"] if operation.body or operation.in_query else []
    words += [f'("{each.name}", {camel(each.name)})' for each in operation.in_query]
    answer = _type(operation.answer) if operation.answer else "string"
    ask = f"JsonAsync<{answer}>" if operation.answer else "TextAsync"
    return [
        f"    /// <summary>{_said(operation.says)}</summary>",
        f"    public Task<{answer}> {pascal(operation.name)}Async({', '.join(given)}) =>",
        f"        {ask}({', '.join(words)});",
    ]


def _record(record: Record) -> list[str]:
    lines = [f"/// <summary>{_said(record.says)}</summary>"] if record.says else []
    # A parameter that may be left out comes after those that may not.
    fields = sorted(record.fields, key=lambda each: not each.required)
    lines += [f'/// <param name="{pascal(each.name)}">{_said(each.says)}</param>' for each in fields if each.says]
    members = ", ".join(_member(each) for each in fields)
    return [*lines, f"public sealed record {record.name}({members});"]


def _member(field: Field) -> str:
    kind = _type(field.kind)
    return f"{kind} {pascal(field.name)}" if field.required else f"{kind.rstrip('?')}? {pascal(field.name)} = null"


def _said(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _type(kind: Kind) -> str:
    if kind.form in ("any", "either"):
        return "object?" if kind.nullable else "object"
    if kind.form == "tuple":
        return "List<object?>"
    if kind.form == "list":
        return f"List<{_type(kind.parts[0])}>"
    if kind.form == "map":
        return f"Dictionary<string, {_type(kind.parts[0])}>"
    told = kind.name if kind.form == "record" else _SCALARS[kind.form]
    return f"{told}?" if kind.nullable else told
