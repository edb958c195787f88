package dev.lily.metal.check;

import java.io.PrintStream;

/** Prints what came of each step, one line each, details indented below. */
public final class Report {
  /** What can come of a step. */
  enum Outcome {
    PASS,
    FAIL,
    SKIP
  }

  /** A step that may throw anything. */
  @FunctionalInterface
  interface Step {
    void run() throws Exception;
  }

  private final PrintStream out;
  private int failures;

  Report(PrintStream out) {
    this.out = out;
  }

  /** Runs a step; whatever it throws is its failure. */
  void run(String step, Step body) {
    try {
      body.run();
    } catch (Exception | LinkageError e) {
      fail(step, e.toString().replace("\n", "\n      "));
    }
  }

  void pass(String step, String text) {
    line(Outcome.PASS, step, text);
  }

  void fail(String step, String text) {
    failures++;
    line(Outcome.FAIL, step, text);
  }

  void skip(String step, String reason) {
    line(Outcome.SKIP, step, reason);
  }

  private void line(Outcome outcome, String step, String text) {
    out.printf("%s  %s: %s%n", outcome, step, text);
  }

  /** A line that belongs to the step that ends next. */
  void detail(String text) {
    out.println("      " + text);
  }

  int failures() {
    return failures;
  }
}
