package turnstile;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * Turnstile for tests: in a container or, where no Docker is, as a process.
 *
 * <p>Which it is, says the variable TURNSTILE_RUN: container (the default), or process, which needs the turnstile command.
 * TURNSTILE_IMAGE names the image.
 */
public final class Turnstile implements AutoCloseable {
    private static final String IMAGE = "localhost/turnstile:latest";

    /** "container" or "process". */
    public final String run = variable("TURNSTILE_RUN", "container");

    private final HttpClient http = HttpClient.newHttpClient();
    private final String token = UUID.randomUUID().toString();
    private AutoCloseable started;
    private String bootstrap;
    private String admin;

    private Turnstile() {}

    /** Returns when every process of the cluster accepts connections; {@code options} are those of {@code turnstile up}. */
    public static Turnstile start(String... options) throws Exception {
        Turnstile cluster = new Turnstile();
        try {
            switch (cluster.run) {
                case "container" -> cluster.startContainer(options);
                case "process" -> cluster.startProcess(options);
                default -> throw new IllegalArgumentException("TURNSTILE_RUN cannot be " + cluster.run + ": container or process");
            }
        } catch (Exception fault) {
            cluster.close();
            throw fault;
        }
        return cluster;
    }

    private void startContainer(String... options) {
        DockerImageName image = DockerImageName.parse(variable("TURNSTILE_IMAGE", IMAGE));
        var container = new GenericContainer<>(image)
                .withCommand(words(List.of("up"), options))
                .withEnv("TURNSTILE_ADMIN_TOKEN", token)
                .withExposedPorts(9092, 9644)
                .waitingFor(Wait.forLogMessage(".*Turnstile is ready\\.\\s*", 1));
        started = container;
        container.start();
        bootstrap = container.getHost() + ":" + container.getMappedPort(9092);
        admin = "http://" + container.getHost() + ":" + container.getMappedPort(9644);
        // The port is known only now: from here on clients are told of it.
        ask("PUT", "/v1/advertise", "{\"addresses\": \"%s\"}".formatted(bootstrap));
    }

    private void startProcess(String... options) throws IOException {
        var up = List.of("turnstile", "up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0");
        ProcessBuilder builder = new ProcessBuilder(words(up, options)).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("TURNSTILE_ADMIN_TOKEN", token);
        Process process = builder.start();
        started = () -> { // it ends with its standard input, also if this JVM is killed
            process.getOutputStream().close();
            process.waitFor();
        };
        String told = process.inputReader().readLine();
        admin = text("admin", told);
        bootstrap = text("address", told);
    }

    /** What a client's {@code bootstrap.servers} takes. */
    public String bootstrap() {
        return bootstrap;
    }

    /** Changes a setting; when this returns, every process of the cluster enforces it. */
    public void set(String name, Object value) {
        ask("PUT", "/v1/cluster_config", "{\"upsert\": {\"%s\": \"%s\"}, \"remove\": []}".formatted(name, value));
    }

    /** Sets a quota of a client-id, likewise. */
    public void quota(String clientId, String name, double value) {
        ask("PUT", "/v1/quotas", "{\"alter\": [{\"entity\": {\"client-id\": \"%s\"}, \"set\": {\"%s\": %s}, \"remove\": []}]}"
                .formatted(clientId, name, value));
    }

    /** Makes it what it was when it started: no record, no group, no limit that a test has set, no connection. */
    public void reset() {
        ask("POST", "/v1/reset", "");
    }

    /** Connections refused since the reset, by the limit that refused them. */
    public Map<String, Integer> refusals() {
        Map<String, Integer> found = new TreeMap<>();
        Matcher rows = Pattern.compile("\"reasons\": ?\\{([^}]*)}").matcher(ask("GET", "/v1/refusals?by=ip", ""));
        while (rows.find()) {
            Matcher reasons = Pattern.compile("\"(\\w+)\": ?(\\d+)").matcher(rows.group(1));
            while (reasons.find()) {
                found.merge(reasons.group(1), Integer.valueOf(reasons.group(2)), Integer::sum);
            }
        }
        return found;
    }

    /** The JSON of an answer of the admin API; of a change, once it is in force. */
    public String ask(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(admin + path))
                .header("authorization", "Bearer " + token)
                .header("x-turnstile-who", "tests in Java")
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
            Thread.currentThread().interrupt();
            throw new IllegalStateException(fault);
        }
    }

    @Override
    public void close() throws Exception {
        if (started != null) {
            started.close();
        }
    }

    private static String[] words(List<String> first, String... options) {
        List<String> all = new ArrayList<>(first);
        all.addAll(List.of(options));
        return all.toArray(String[]::new);
    }

    private static String text(String name, String json) {
        Matcher found = Pattern.compile("\"" + name + "\": ?\"([^\"]*)\"").matcher(String.valueOf(json));
        if (!found.find()) {
            throw new IllegalStateException("turnstile up said " + json);
        }
        return found.group(1);
    }

    private static String variable(String name, String otherwise) {
        return Optional.ofNullable(System.getenv(name)).orElse(otherwise);
    }
}
