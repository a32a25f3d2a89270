package turnstile.oracle;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/**
 * A clock that only the driver moves, and that shows one acceptor thread at a time what it says.
 *
 * <p>ConnectionQuotas waits in {@code Object.wait} with real milliseconds, and looks at this clock whenever it wakes.
 * An acceptor that it is not the turn of reads a time long past, finds that it still has to wait, and waits again. So
 * real time-outs and {@code notifyAll} decide nothing: the driver says who looks next, and when.
 */
final class VirtualTime implements Time {
  /** Virtual 0. Token buckets start empty at 0 and are full by any real time, so it has to be long after. */
  private static final long START_MS = 1_700_000_000_000L;

  private volatile long nowMs = START_MS;
  private volatile Thread turn;

  long now() {
    return nowMs - START_MS;
  }

  void moveTo(long virtualMs) {
    nowMs = START_MS + virtualMs;
  }

  /** Lets this acceptor thread read the time; null: none. */
  void giveTurn(Thread acceptor) {
    turn = acceptor;
  }

  @Override
  public long milliseconds() {
    if (!(Thread.currentThread() instanceof Acceptor acceptor)) {
      return nowMs;
    }
    if (acceptor != turn) {
      return 0;
    }
    acceptor.looked();
    return nowMs;
  }

  @Override
  public long nanoseconds() {
    return milliseconds() * 1_000_000;
  }

  @Override
  public void sleep(long ms) {
    throw new UnsupportedOperationException("nothing under test sleeps");
  }

  @Override
  public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
    throw new UnsupportedOperationException("nothing under test waits this way");
  }
}
