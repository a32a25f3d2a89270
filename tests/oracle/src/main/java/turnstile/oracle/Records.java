package turnstile.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/** Kafka's four client quota managers under a virtual clock. */
final class Records {
  private static final double NANOS_TO_PERCENT = 100.0 / 1_000_000_000L; // ClientRequestQuotaManager's own, not visible

  private final VirtualTime time;
  private final Metrics metrics;
  private final Map<String, ClientQuotaManager> managers = new HashMap<>();
  private final Set<String> present = new HashSet<>();
  private final InetAddress anywhere = InetAddress.getLoopbackAddress();

  Records(VirtualTime time, KafkaConfig config) {
    this.time = time;
    this.metrics = new Metrics(time);
    var windows = new ClientQuotaManagerConfig(
        config.quotaConfig().numQuotaSamples(), config.quotaConfig().quotaWindowSizeSeconds());
    var mutationWindows = new ClientQuotaManagerConfig(
        config.quotaConfig().numControllerQuotaSamples(), config.quotaConfig().controllerQuotaWindowSizeSeconds());
    managers.put("producer_byte_rate",
        new ClientQuotaManager(windows, metrics, QuotaType.PRODUCE, time, "oracle", Optional.empty()));
    managers.put("consumer_byte_rate",
        new ClientQuotaManager(windows, metrics, QuotaType.FETCH, time, "oracle", Optional.empty()));
    managers.put("request_percentage",
        new ClientRequestQuotaManager(windows, metrics, time, "oracle", Optional.empty()));
    managers.put("controller_mutation_rate",
        new ControllerMutationQuotaManager(mutationWindows, metrics, time, "oracle", Optional.empty()));
  }

  /** Sets a quota, or removes one that is there: the controller drops other removals before a broker hears of them. */
  void update(JsonNode entity, String key, Double value) {
    String name = key + entity;
    if (value != null) {
      present.add(name);
    } else if (!present.remove(name)) {
      return;
    }
    Optional<ClientQuotaEntity.ConfigEntity> user = Optional.empty();
    Optional<ClientQuotaEntity.ConfigEntity> clientId = Optional.empty();
    if (entity.has("user")) {
      user = Optional.of(entity.get("user").isNull()
          ? ClientQuotaManager.DEFAULT_USER_ENTITY
          : new ClientQuotaManager.UserEntity(Sanitizer.sanitize(entity.get("user").asText())));
    }
    if (entity.has("client-id")) {
      clientId = Optional.of(entity.get("client-id").isNull()
          ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID
          : new ClientQuotaManager.ClientIdEntity(entity.get("client-id").asText()));
    }
    managers.get(key).updateQuota(user, clientId, Optional.ofNullable(value).map(bound -> new Quota(bound, true)));
  }

  String record(JsonNode event) {
    Session session = new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, event.path("user").asText("")), anywhere);
    String clientId = event.path("client_id").asText("");
    double amount = event.get("amount").asDouble();
    return switch (event.get("quota").asText()) {
      case "produce" -> accepted(record("producer_byte_rate", session, clientId, amount));
      case "fetch" -> accepted(fetch(session, clientId, amount));
      case "request" -> accepted(
          record("request_percentage", session, clientId, Math.round(amount * 1e6) * NANOS_TO_PERCENT));
      case "mutation" -> mutate(session, clientId, amount, event.path("strict").asBoolean(true));
      default -> throw new IllegalArgumentException(event.toString());
    };
  }

  void close() {
    managers.values().forEach(ClientQuotaManager::initiateShutdown);
    metrics.close();
  }

  private int record(String key, Session session, String clientId, double value) {
    return managers.get(key).maybeRecordAndGetThrottleTimeMs(session, clientId, value, time.milliseconds());
  }

  /** With the take-back of KafkaApis: unrecordQuotaSensor, which asks for a whole request to do the same. */
  private int fetch(Session session, String clientId, double value) {
    int throttleMs = record("consumer_byte_rate", session, clientId, value);
    if (throttleMs > 0) {
      managers.get("consumer_byte_rate").getOrCreateQuotaSensors(session, clientId).quotaSensor()
          .record(-value, time.milliseconds(), false);
    }
    return throttleMs;
  }

  private String mutate(Session session, String clientId, double value, boolean strict) {
    var manager = (ControllerMutationQuotaManager) managers.get("controller_mutation_rate");
    ControllerMutationQuota quota = strict
        ? manager.newStrictQuotaFor(session, clientId)
        : manager.newPermissiveQuotaFor(session, clientId);
    try {
      quota.record(value);
    } catch (ThrottlingQuotaExceededException refused) {
      return "{\"outcome\":\"refused\",\"throttle_ms\":" + refused.throttleTimeMs() + "}";
    }
    return accepted(quota.throttleTime());
  }

  private static String accepted(int throttleMs) {
    return "{\"outcome\":\"accepted\",\"throttle_ms\":" + throttleMs + "}";
  }
}
