package turnstile.oracle;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.network.ConnectionQuotas;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Time;

/** A scenario's listeners and settings, as the configuration of a broker that has no other purpose. */
final class Settings {
  private static final String NOBODY = "NOBODY"; // the inter-broker listener of scenarios that name none

  List<String> listeners = List.of("PLAINTEXT");
  String interBroker;
  private final Map<String, String> values = new TreeMap<>();

  /** Sets or, with null, removes; the broker's own validation may throw, and then nothing is changed. */
  KafkaConfig change(String name, String value) {
    String before = value == null ? values.remove(name) : values.put(name, value);
    try {
      KafkaConfig config = config();
      validateListeners(config);
      return config;
    } catch (RuntimeException refused) {
      if (before == null) {
        values.remove(name);
      } else {
        values.put(name, before);
      }
      throw refused;
    }
  }

  KafkaConfig config() {
    Properties props = new Properties();
    StringBuilder sockets = new StringBuilder();
    StringBuilder protocols = new StringBuilder("CONTROLLER:PLAINTEXT");
    int port = 19000;
    for (String name : listeners) {
      sockets.append(name).append("://localhost:").append(port++).append(',');
      protocols.append(',').append(name).append(":PLAINTEXT");
    }
    if (interBroker == null) {
      protocols.append("," + NOBODY + ":PLAINTEXT");
    }
    sockets.append(interBroker == null ? NOBODY + "://localhost:" + port : "");
    props.put("listeners", sockets.toString().replaceAll(",$", ""));
    props.put("listener.security.protocol.map", protocols.toString());
    props.put("inter.broker.listener.name", interBroker == null ? NOBODY : interBroker);
    props.put("process.roles", "broker");
    props.put("node.id", "1");
    props.put("controller.listener.names", "CONTROLLER");
    props.put("controller.quorum.bootstrap.servers", "localhost:18999");
    props.putAll(values);
    return KafkaConfig.fromProps(props, false);
  }

  /** What DynamicBrokerConfig asks every listener before it lets a change through. */
  private void validateListeners(KafkaConfig config) {
    ConnectionQuotas quotas = new ConnectionQuotas(config, Time.SYSTEM, new Metrics());
    for (String name : listeners) {
      ListenerName listener = new ListenerName(name);
      quotas.addListener(config, listener);
      quotas.maxConnectionsPerListener().apply(listener)
          .validateReconfiguration(config.valuesWithPrefixOverride(listener.configPrefix()));
    }
  }
}
