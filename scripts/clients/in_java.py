"""The client in Java: one class, whose records Jackson reads and writes."""

from __future__ import annotations

from api_model import ApiModel, Field, Kind, Operation, Record, camel, wrapped

FILE = "java/src/main/java/turnstile/AdminApi.java"
_SCALARS = {"string": "String", "word": "String", "integer": "long", "number": "double", "boolean": "boolean"}
_BOXED = {"long": "Long", "double": "Double", "boolean": "Boolean"}
_RESERVED = ("default",)
_HEAD = """package turnstile;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * Calls of the admin API of one cluster; they throw {@link Refused}, and UncheckedIOException where nothing answers. An argument
 * that is null is left out.
 *
 * <p>Generated from the API's OpenAPI document by {@code make clients}: changes belong there.
 */
public final class AdminApi {
    private static final ObjectMapper JSON = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .setDefaultPropertyInclusion(JsonInclude.Value.construct(JsonInclude.Include.NON_NULL, JsonInclude.Include.ALWAYS))
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    private final HttpClient http = HttpClient.newHttpClient();
    private final String url;
    private final String token;
    private final String who;

    /** {@code token} may be null; {@code who} is what the history of changes names the caller. */
    public AdminApi(String url, String token, String who) {
        this.url = url;
        this.token = token;
        this.who = who;
    }

    /** The API answered with an error. */
    public static final class Refused extends RuntimeException {
        public final int status;

        Refused(int status, String told) {
            super(status + ": " + told);
            this.status = status;
        }
    }

    private <T> T json(String method, String target, Object body, TypeReference<T> kind) {
        try {
            return JSON.readValue(text(method, target, body), kind);
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        }
    }

    private String text(String method, String target, Object body) {
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + target))
                    .header("content-type", "application/json")
                    .header("x-turnstile-who", who)
                    .method(method, body == null
                            ? HttpRequest.BodyPublishers.noBody()
                            : HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body)));
            if (token != null) {
                request.header("authorization", "Bearer " + token);
            }
            HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() >= 400) {
                throw new Refused(response.statusCode(), response.body());
            }
            return response.body();
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        } catch (InterruptedException fault) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(fault);
        }
    }

    /** A path and its query: names and values by turns. */
    private static String target(String path, Object... query) {
        StringBuilder asked = new StringBuilder();
        for (int i = 0; i < query.length; i += 2) {
            if (query[i + 1] != null) {
                asked.append(asked.isEmpty() ? '?' : '&').append(query[i]).append('=').append(encoded(query[i + 1]));
            }
        }
        return path + asked;
    }

    private static String encoded(Object value) {
        return URLEncoder.encode(String.valueOf(value), StandardCharsets.UTF_8).replace("+", "%20");
    }
"""


def written(api: ApiModel) -> dict[str, str]:
    """The files by their paths."""
    lines = [_HEAD.rstrip()]
    for operation in api.operations:
        lines += ["", *_method(operation)]
    for record in api.records:
        lines += ["", *_record(record)]
    return {FILE: "\n".join([*lines, "}"]) + "\n"}


def _method(operation: Operation) -> list[str]:
    """One method, and, where there is a query, one more without it: that stays when the query grows."""
    given = [f"String {camel(each.name)}" for each in operation.in_path]
    given += [f"{_type(operation.body)} body"] if operation.body else []
    asked = [f"{_boxed(each.kind)} {camel(each.name)}" for each in operation.in_query]
    path = f'"{operation.path}"'
    for each in operation.in_path:
        path = path.replace(f'{{{each.name}}}"', f'" + encoded({camel(each.name)})')
    query = "".join(f', "{each.name}", {camel(each.name)}' for each in operation.in_query)
    target = f"target({path}{query})" if query else path
    words = f'"{operation.method}", {target}, {"body" if operation.body else "null"}'
    if operation.answer is None:
        answer, call = "String", f"text({words})"
    else:
        answer, call = _boxed(operation.answer), f"json({words}, new TypeReference<>() {{}})"
    name, said = camel(operation.name), _said(operation.says, "    ")
    lines = _public(said, f"{answer} {name}({', '.join([*given, *asked])})", call)
    if asked:
        passed = [each.partition(" ")[2] for each in given] + ["null"] * len(asked)
        lines += ["", *_public(said, f"{answer} {name}({', '.join(given)})", f"{name}({', '.join(passed)})")]
    return lines


def _public(said: list[str], signature: str, call: str) -> list[str]:
    return [*said, f"    public {signature} {{", f"        return {call};", "    }"]


def _record(record: Record) -> list[str]:
    lines = _said(record.says, "    ")
    if not record.fields:
        return [*lines, f"    public record {record.name}() {{}}"]
    members = [
        line
        for n, each in enumerate(record.fields)
        for line in [
            *_said(each.says, " " * 12),
            f"            {_member(each)}{',' if n < len(record.fields) - 1 else ') {}'}",
        ]
    ]
    return [*lines, f"    public record {record.name}(", *members]


def _member(field: Field) -> str:
    name = camel(field.name)
    kind = _type(field.kind) if field.required else _boxed(field.kind)
    return f'@JsonProperty("{field.name}") {kind} {name}_' if name in _RESERVED else f"{kind} {name}"


def _said(text: str, indent: str) -> list[str]:
    if len(text) < 110:
        return [f"{indent}/** {text} */"] if text else []
    return [f"{indent}/**", *wrapped(text, f"{indent} * "), f"{indent} */"]


def _type(kind: Kind) -> str:
    if kind.form in ("any", "either"):
        return "Object"
    if kind.form == "tuple":
        return "List<Object>"
    if kind.form in ("list", "map"):
        of = _boxed(kind.parts[0])
        return f"List<{of}>" if kind.form == "list" else f"Map<String, {of}>"
    told = kind.name if kind.form == "record" else _SCALARS[kind.form]
    return _BOXED.get(told, told) if kind.nullable else told


def _boxed(kind: Kind) -> str:
    told = _type(kind)
    return _BOXED.get(told, told)
