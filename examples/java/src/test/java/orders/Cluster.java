package orders;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A {@code turnstile up}. It ends when its standard input does: with this JVM, however that ends. */
final class Cluster implements AutoCloseable {
    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final String admin;
    final String bootstrap;

    Cluster(String... options) throws IOException {
        List<String> up = new ArrayList<>(List.of(
                "turnstile", "up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0"));
        up.addAll(List.of(options));
        process = new ProcessBuilder(up).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader out = process.inputReader();
        String started = out.readLine(); // its first line, once every process accepts connections
        admin = text("admin", started);
        bootstrap = text("address", started);
    }

    /** Makes the cluster what it was when it started, in milliseconds: a test begins with nothing of those before it. */
    void reset() {
        ask("POST", "/v1/reset", "");
    }

    /** Changes a setting; when this returns, every process of the cluster enforces it. */
    void set(String name, Object value) {
        ask("PUT", "/v1/cluster_config", "{\"upsert\": {\"%s\": \"%s\"}, \"remove\": []}".formatted(name, value));
    }

    /** Sets a quota of a client-id. */
    void quota(String clientId, String name, double value) {
        ask("PUT", "/v1/quotas", "{\"alter\": [{\"entity\": {\"client-id\": \"%s\"}, \"set\": {\"%s\": %s}, \"remove\": []}]}"
                .formatted(clientId, name, value));
    }

    /** Connections refused since the reset. */
    long refused() {
        Matcher counts = Pattern.compile("\"count\": ?(\\d+)").matcher(ask("GET", "/v1/refusals?by=ip", ""));
        return counts.results().mapToLong(count -> Long.parseLong(count.group(1))).sum();
    }

    private String ask(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(admin + path))
                .header("content-type", "application/json")
                .header("x-turnstile-who", "mvn test")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        try {
            HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() >= 400) {
                throw new IllegalArgumentException(method + " " + path + ": " + response.body());
            }
            return response.body();
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        } catch (InterruptedException fault) {
            throw new IllegalStateException(fault);
        }
    }

    private static String text(String name, String json) {
        Matcher found = Pattern.compile("\"" + name + "\": ?\"([^\"]*)\"").matcher(String.valueOf(json));
        if (!found.find()) {
            throw new IllegalStateException("turnstile up said " + json);
        }
        return found.group(1);
    }

    @Override
    public void close() throws InterruptedException, IOException {
        process.getOutputStream().close();
        process.waitFor();
    }
}
