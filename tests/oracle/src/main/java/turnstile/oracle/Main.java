package turnstile.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import kafka.server.KafkaConfig;

/** Scenarios on standard input, each ended by an empty line; their answers on standard output, in the same way. */
public final class Main {
  private final VirtualTime time = new VirtualTime();
  private final Settings settings = new Settings();
  private final List<Answer> answers = new ArrayList<>();
  private final Map<Object, Connect> connects = new HashMap<>();
  private final Map<InetAddress, Integer> ipRates = new HashMap<>();
  private Integer defaultIpRate;
  private final List<JsonNode> clientQuotas = new ArrayList<>();
  private Connections connections;
  private Records records;

  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    Main scenario = new Main();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      if (!line.isBlank()) {
        scenario.take(Json.read(line));
        continue;
      }
      scenario.finish().forEach(answer -> out.println(answer.toJson()));
      out.println();
      out.flush();
      scenario = new Main();
    }
    System.exit(0); // the quota managers' threads are not daemons
  }

  private void take(JsonNode event) throws Exception {
    long at = event.get("at").asLong();
    if (connections != null) {
      connections.advance(at);
    }
    time.moveTo(at);
    switch (event.get("do").asText()) {
      case "setup" -> setUp(event);
      case "set" -> set(event.get("name").asText(), text(event.get("value")));
      case "quota" -> quota(event);
      case "connect" -> connect(event);
      case "close" -> close(event);
      case "record" -> {
        String answer = records().record(event);
        answers.add(() -> answer);
      }
      default -> throw new IllegalArgumentException(event.toString());
    }
  }

  private List<Answer> finish() throws Exception {
    if (connections != null) {
      connections.finish();
    }
    if (records != null) {
      records.close();
    }
    return answers;
  }

  private void setUp(JsonNode event) {
    List<String> names = new ArrayList<>();
    event.get("listeners").forEach(name -> names.add(name.asText()));
    settings.listeners = names;
    settings.interBroker = text(event.get("inter_broker"));
  }

  private void set(String name, String value) throws InterruptedException {
    boolean atStart = name.contains("quota.window.");
    if (atStart && (connections != null || records != null)) {
      return;
    }
    KafkaConfig config;
    try {
      config = settings.change(name, value);
    } catch (RuntimeException refused) {
      return;
    }
    if (connections != null) {
      connections.reconfigure(config);
    }
  }

  private void quota(JsonNode event) throws Exception {
    JsonNode entity = event.get("entity");
    JsonNode value = event.path("value");
    boolean removed = value.isNull() || value.isMissingNode();
    if (!entity.has("ip")) {
      boolean whole = event.get("key").asText().endsWith("byte_rate");
      if (!removed && (value.asDouble() <= 0 || (whole && value.asDouble() % 1 > 1e-6))) {
        return; // ClientQuotaControlManager refuses it before a broker hears of it
      }
      clientQuotas.add(event);
      if (records != null) {
        update(records, event);
      }
      return;
    }
    double rate = removed ? 1 : value.asDouble();
    if (rate <= 0 || rate > Integer.MAX_VALUE || rate % 1 > 1e-6) {
      return; // likewise
    }
    Integer perSecond = removed ? null : Integer.valueOf((int) value.asDouble());
    InetAddress ip = entity.get("ip").isNull() ? null : InetAddress.getByName(entity.get("ip").asText());
    if (ip == null) {
      defaultIpRate = perSecond;
    } else {
      ipRates.put(ip, perSecond);
    }
    if (connections != null) {
      connections.setIpRate(ip, perSecond);
    }
  }

  private void connect(JsonNode event) throws Exception {
    Listener listener = connections().listener(text(event.path("listener")));
    Connect connect = new Connect(id(event), InetAddress.getByName(event.get("ip").asText()), listener);
    connects.put(connect.id, connect);
    answers.add(connect);
    connections.connect(connect);
  }

  private void close(JsonNode event) throws InterruptedException {
    connections.close(connects.get(id(event)));
  }

  private Connections connections() throws ReflectiveOperationException {
    if (connections == null) {
      connections = new Connections(time, settings);
      if (defaultIpRate != null) {
        connections.setIpRate(null, defaultIpRate);
      }
      ipRates.forEach(connections::setIpRate);
    }
    return connections;
  }

  private Records records() {
    if (records == null) {
      records = new Records(time, settings.config());
      clientQuotas.forEach(event -> update(records, event));
    }
    return records;
  }

  private static void update(Records records, JsonNode event) {
    JsonNode value = event.path("value");
    boolean removed = value.isNull() || value.isMissingNode();
    records.update(event.get("entity"), event.get("key").asText(), removed ? null : value.asDouble());
  }

  private static Object id(JsonNode event) {
    JsonNode id = event.get("id");
    return id.isIntegralNumber() ? (Object) id.asLong() : id.asText();
  }

  private static String text(JsonNode value) {
    return value == null || value.isNull() || value.isMissingNode() ? null : value.asText();
  }
}
