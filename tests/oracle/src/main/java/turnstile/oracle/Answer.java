package turnstile.oracle;

/** One line of output. */
interface Answer {
  String toJson();
}
