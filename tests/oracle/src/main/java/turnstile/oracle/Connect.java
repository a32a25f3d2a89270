package turnstile.oracle;

import java.net.InetAddress;

/** One connect of a scenario, and its answer once there is one. */
final class Connect implements Answer {
  final Object id;
  final InetAddress address;
  final Listener listener;
  String outcome;
  Long at;
  String reason;
  boolean open;
  boolean gone;

  Connect(Object id, InetAddress address, Listener listener) {
    this.id = id;
    this.address = address;
    this.listener = listener;
  }

  void decide(String outcome, Long at, String reason) {
    this.outcome = outcome;
    this.at = at;
    this.reason = reason;
  }

  @Override
  public String toJson() {
    String quoted = reason == null ? "null" : '"' + reason + '"';
    return "{\"id\":" + Json.write(id) + ",\"outcome\":\"" + outcome + "\",\"at\":" + at + ",\"reason\":" + quoted + "}";
  }
}
