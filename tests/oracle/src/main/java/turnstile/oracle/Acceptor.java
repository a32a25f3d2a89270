package turnstile.oracle;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.MetricsRegistry;
import java.net.InetAddress;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import kafka.network.ConnectionQuotas;
import org.apache.kafka.common.network.ListenerName;

/** The thread that calls {@code inc} for one listener, as Kafka's acceptor does, and is watched while it waits in it. */
final class Acceptor extends Thread {
  enum State { DONE, DELAYED, PARKED }

  private static final MetricsRegistry METERS = new MetricsRegistry();

  final ListenerName listener;
  private final ConnectionQuotas quotas;
  private final Object monitor;
  private final VirtualTime time;
  private final Meter blocked;
  private final SynchronousQueue<InetAddress> next = new SynchronousQueue<>();
  private volatile long looks;
  private volatile boolean done;
  private volatile Throwable thrown;

  Acceptor(String listener, ConnectionQuotas quotas, Object monitor, VirtualTime time) {
    super("acceptor-" + listener);
    this.listener = new ListenerName(listener);
    this.quotas = quotas;
    this.monitor = monitor;
    this.time = time;
    this.blocked = METERS.newMeter(Acceptor.class, "blocked", "nanoseconds", TimeUnit.NANOSECONDS);
    setDaemon(true);
    start();
  }

  @Override
  public void run() {
    try {
      while (true) {
        InetAddress address = next.take();
        Throwable outcome = null;
        try {
          quotas.inc(listener, address, blocked);
        } catch (Throwable refused) {
          outcome = refused;
        }
        if (outcome instanceof InterruptedException) {
          return;
        }
        thrown = outcome;
        done = true;
      }
    } catch (InterruptedException stopped) {
      // the scenario is over
    }
  }

  /** Called by the clock, inside ConnectionQuotas and so under its monitor. */
  void looked() {
    looks++;
  }

  /** Calls {@code inc} and answers how far it came at this instant. */
  State accept(InetAddress address) throws InterruptedException {
    done = false;
    long before = looks;
    time.giveTurn(this);
    next.put(address);
    return settle(before);
  }

  /** Lets a waiting {@code inc} look once more. */
  State lookAgain() throws InterruptedException {
    long before;
    synchronized (monitor) {
      before = looks;
      time.giveTurn(this);
      monitor.notifyAll();
    }
    return settle(before);
  }

  /** What {@code inc} threw, null if it returned. */
  Throwable thrown() {
    return thrown;
  }

  /**
   * Waits until this thread has looked at the clock and either left {@code inc} or waits in it again. Holding the
   * monitor while reading the state rules out that it is in between.
   */
  private State settle(long before) throws InterruptedException {
    try {
      while (true) {
        if (done) {
          return State.DONE;
        }
        synchronized (monitor) {
          if (looks > before) {
            Thread.State state = getState();
            if (done) {
              return State.DONE;
            }
            if (state == Thread.State.WAITING) {
              return State.PARKED;
            }
            if (state == Thread.State.TIMED_WAITING) {
              return State.DELAYED;
            }
          }
        }
        Thread.yield();
      }
    } finally {
      time.giveTurn(null);
    }
  }
}
