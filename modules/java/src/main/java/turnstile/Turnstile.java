package turnstile;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.UUID;
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

    private final String token = UUID.randomUUID().toString();
    private AutoCloseable started;
    private String bootstrap;
    private AdminApi api;

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
        api = new AdminApi("http://" + container.getHost() + ":" + container.getMappedPort(9644), token, "tests in Java");
        // The port is known only now: from here on clients are told of it.
        api.putAdvertised(new AdminApi.AddressesChange(null, null, bootstrap));
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
        JsonNode told = new ObjectMapper().readTree(process.inputReader().readLine());
        if (told.has("error")) {
            throw new IllegalStateException(told.get("error").asText());
        }
        api = new AdminApi(told.get("admin").asText(), token, "tests in Java");
        bootstrap = told.at("/listeners/0/address").asText();
    }

    /** What a client's {@code bootstrap.servers} takes. */
    public String bootstrap() {
        return bootstrap;
    }

    /** Calls of the admin API; a change is in force when its call returns. */
    public AdminApi api() {
        return api;
    }

    /** Changes a setting; when this returns, every process of the cluster enforces it. */
    public void set(String name, Object value) {
        api.putConfig(new AdminApi.SettingsChange(Map.of(name, value), null));
    }

    /** Sets a quota of a client-id, likewise. */
    public void quota(String clientId, String name, double value) {
        var change = new AdminApi.QuotaChange(Map.of("client-id", clientId), Map.of(name, value), null);
        api.putQuotas(new AdminApi.QuotasChange(List.of(change)));
    }

    /** Makes it what it was when it started: no record, no group, no limit that a test has set, no connection. */
    public void reset() {
        api.reset();
    }

    /** Connections refused since the reset, by the limit that refused them. */
    public Map<String, Long> refusals() {
        Map<String, Long> found = new TreeMap<>();
        for (var row : api.getRefusals("ip", null).refusals()) {
            row.reasons().forEach((reason, count) -> found.merge(reason, count, Long::sum));
        }
        return found;
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

    private static String variable(String name, String otherwise) {
        return Optional.ofNullable(System.getenv(name)).orElse(otherwise);
    }
}
