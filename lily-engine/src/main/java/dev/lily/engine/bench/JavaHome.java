package dev.lily.engine.bench;

/** Prints where the JDK is that the benchmarks run on, for tools beside them. */
public final class JavaHome {
  private JavaHome() {}

  public static void main(String[] arguments) {
    System.out.println(System.getProperty("java.home"));
  }
}
