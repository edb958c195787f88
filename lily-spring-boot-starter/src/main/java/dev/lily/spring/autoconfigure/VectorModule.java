package dev.lily.spring.autoconfigure;

/** The incubator module of the Vector API, which only a launch flag can add. */
final class VectorModule {

  static final String ADVICE =
      "The vector kernels need the JVM flag --add-modules jdk.incubator.vector: give it to java, or"
          + " set JDK_JAVA_OPTIONS. Without it, lily.cpu.kernels=auto or scalar runs slower"
          + " kernels.";

  private VectorModule() {}

  static boolean isPresent() {
    return ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();
  }
}
