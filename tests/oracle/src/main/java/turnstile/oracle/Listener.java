package turnstile.oracle;

import java.util.ArrayDeque;

/** A listener's acceptor, the connect it is busy with, and those that wait behind it. */
final class Listener {
  final String name;
  final boolean isProtected;
  final Acceptor acceptor;
  final ArrayDeque<Connect> behind = new ArrayDeque<>();
  Connect busy;

  Listener(String name, boolean isProtected, Acceptor acceptor) {
    this.name = name;
    this.isProtected = isProtected;
    this.acceptor = acceptor;
  }
}
