package turnstile.oracle;

import java.lang.reflect.Field;
import java.net.InetAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import kafka.network.ConnectionQuotas;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Value;
import org.apache.kafka.common.network.ListenerName;
import scala.Option;

/**
 * Kafka's ConnectionQuotas under a virtual clock. It decides everything: who waits, how long, who is refused. What is
 * left to this class is what the acceptor and processor threads around it do, and the order of things due together:
 * delays in the order they end and then began, waiters for a slot in the order they came to wait.
 */
final class Connections {
  private record Delay(long until, long order, Connect connect) implements Comparable<Delay> {
    @Override
    public int compareTo(Delay other) {
      return until != other.until ? Long.compare(until, other.until) : Long.compare(order, other.order);
    }
  }

  private final VirtualTime time;
  private final Settings settings;
  private final Metrics metrics;
  private final ConnectionQuotas quotas;
  private final Map<String, Listener> listeners = new LinkedHashMap<>();
  private final Map<String, KafkaMetric> lastDelay = new HashMap<>();
  private final PriorityQueue<Delay> delays = new PriorityQueue<>();
  private final LinkedHashSet<Connect> parked = new LinkedHashSet<>();
  private final ArrayDeque<Connect> oldest = new ArrayDeque<>();
  private long order;

  Connections(VirtualTime time, Settings settings) throws ReflectiveOperationException {
    this.time = time;
    this.settings = settings;
    this.metrics = new Metrics(time);
    KafkaConfig config = settings.config();
    this.quotas = new ConnectionQuotas(config, time, metrics);
    Object monitor = field("counts");
    for (String name : settings.listeners) {
      quotas.addListener(config, new ListenerName(name));
      boolean isProtected = name.equals(settings.interBroker) && settings.listeners.size() > 1;
      listeners.put(name, new Listener(name, isProtected, new Acceptor(name, quotas, monitor, time)));
      Sensor throttle = quotas.maxConnectionsPerListener().apply(new ListenerName(name))
          .listenerConnectionRateThrottleSensor();
      var metric = metrics.metricName("last-delay", "oracle", Map.of("listener", name));
      throttle.add(metric, new Value());
      lastDelay.put(name, metrics.metric(metric));
    }
  }

  Listener listener(String name) {
    return name == null ? listeners.values().iterator().next() : listeners.get(name);
  }

  /** What SocketServer.reconfigure and the listeners' own reconfigure do with a change that was validated. */
  void reconfigure(KafkaConfig config) throws InterruptedException {
    quotas.updateMaxConnectionsPerIp(config.maxConnectionsPerIp());
    quotas.updateMaxConnectionsPerIpOverride(config.maxConnectionsPerIpOverrides());
    quotas.updateBrokerMaxConnections(config.maxConnections());
    quotas.updateBrokerMaxConnectionRate(config.maxConnectionCreationRate());
    for (String name : listeners.keySet()) {
      ListenerName listener = new ListenerName(name);
      quotas.maxConnectionsPerListener().apply(listener)
          .reconfigure(config.valuesWithPrefixOverride(listener.configPrefix()));
    }
    wake();
  }

  void setIpRate(InetAddress ip, Integer perSecond) {
    quotas.updateIpConnectionRateQuota(Option.apply(ip), Option.apply(perSecond));
  }

  void connect(Connect connect) throws InterruptedException {
    if (connect.listener.busy != null) {
      connect.listener.behind.add(connect);
    } else {
      begin(connect);
    }
  }

  void close(Connect connect) throws InterruptedException {
    if (connect.open) {
      release(connect);
      wake();
    } else if (connect.outcome == null) {
      connect.gone = true;
    }
  }

  /** Lets every delay that ends until then end. */
  void advance(long until) throws InterruptedException {
    while (!delays.isEmpty() && delays.peek().until() <= until) {
      Delay delay = delays.poll();
      Connect connect = delay.connect();
      time.moveTo(delay.until() - 1);
      if (connect.listener.acceptor.lookAgain() != Acceptor.State.DELAYED) {
        throw new IllegalStateException("ConnectionQuotas let a connection in before its delay was over");
      }
      time.moveTo(delay.until());
      if (settle(connect, connect.listener.acceptor.lookAgain())) {
        goOn(connect.listener);
      }
    }
    if (until != Long.MAX_VALUE) {
      time.moveTo(until);
    }
  }

  /** Lets time run on; what never comes to an end waits for a slot. */
  void finish() throws ReflectiveOperationException, InterruptedException {
    advance(Long.MAX_VALUE);
    int total = (Integer) field("totalCount");
    int most = (Integer) field("brokerMaxConnections");
    for (Listener listener : listeners.values()) {
      if (listener.busy != null) {
        String reason = total >= most && !listener.isProtected ? "broker_cap" : "listener_cap";
        listener.busy.decide("waiting", null, reason);
        listener.behind.forEach(connect -> connect.decide("waiting", null, reason));
      }
      listener.acceptor.interrupt();
      listener.acceptor.join();
    }
    metrics.close();
  }

  private void begin(Connect connect) throws InterruptedException {
    connect.listener.busy = connect;
    settle(connect, connect.listener.acceptor.accept(connect.address));
  }

  /** Notes how far {@code inc} came; whether it is through. */
  private boolean settle(Connect connect, Acceptor.State state) throws InterruptedException {
    Listener listener = connect.listener;
    switch (state) {
      case DELAYED -> {
        double delay = (Double) lastDelay.get(listener.name).metricValue();
        delays.add(new Delay(time.now() + (long) delay, order++, connect));
        return false;
      }
      case PARKED -> {
        parked.add(connect);
        return false;
      }
      default -> {
        parked.remove(connect);
        listener.busy = null;
        finish(connect, listener.acceptor.thrown());
        return true;
      }
    }
  }

  /** What Acceptor.accept does when {@code inc} returns or throws. */
  private void finish(Connect connect, Throwable thrown) {
    String why = thrown == null ? "" : thrown.getClass().getSimpleName();
    switch (why) {
      case "" -> {
        connect.open = true;
        connect.decide("admitted", time.now(), null);
        afterAdmission(connect);
      }
      case "ConnectionThrottledException" -> connect.decide("refused", time.now(), "ip_rate");
      case "TooManyConnectionsException" -> {
        connect.decide("refused", time.now(), "ip_cap");
        quotas.dec(connect.listener.acceptor.listener, connect.address);
      }
      default -> throw new IllegalStateException(thrown);
    }
  }

  /** The processors' part: closing what its client has closed, and the connection idle longest (KIP-402). */
  private void afterAdmission(Connect connect) {
    if (connect.gone) {
      release(connect);
    } else if (!connect.listener.isProtected) {
      oldest.add(connect);
    } else {
      Listener other = listeners.values().stream().filter(listener -> !listener.isProtected).findFirst().orElseThrow();
      if (quotas.maxConnectionsExceeded(other.acceptor.listener)) {
        while (!oldest.isEmpty() && !oldest.peek().open) {
          oldest.poll();
        }
        if (!oldest.isEmpty()) {
          release(oldest.poll());
        }
      }
    }
  }

  private void release(Connect connect) {
    connect.open = false;
    quotas.dec(connect.listener.acceptor.listener, connect.address);
  }

  /** Lets each connection that waits for a slot look again, until none gets further; then the freed listeners go on. */
  private void wake() throws InterruptedException {
    List<Listener> freed = new ArrayList<>();
    boolean again = true;
    while (again) {
      again = false;
      for (Connect connect : List.copyOf(parked)) {
        if (settle(connect, connect.listener.acceptor.lookAgain())) {
          freed.add(connect.listener);
          again = true;
        }
      }
    }
    for (Listener listener : freed) {
      goOn(listener);
    }
  }

  private void goOn(Listener listener) throws InterruptedException {
    while (listener.busy == null && !listener.behind.isEmpty()) {
      begin(listener.behind.poll());
    }
  }

  private Object field(String name) throws ReflectiveOperationException {
    Field field = ConnectionQuotas.class.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(quotas);
  }
}
