package dev.lily.metal.device;

import dev.lily.metal.msl.KernelLibraries;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/**
 * Builds native test code into the module's {@code target} folder, once for each state of its
 * sources. Where tools are missing, tests skip with the reason; with {@value #REQUIRE} set to
 * {@code true} they fail.
 */
final class NativeTools {
  static final String REQUIRE = "LILY_REQUIRE_METAL_TOOLS";

  private static final Path MODULE =
      Path.of(System.getProperty("lily.metal.dir", "")).toAbsolutePath();
  private static final Path SOURCES = MODULE.resolve("src/test/native");
  private static final Path TARGET = MODULE.resolve("target/metal-double");

  private NativeTools() {}

  /**
   * Compiles sources of {@code src/test/native/objc} to a shared library.
   *
   * @throws TestAbortedException if a tool is missing
   */
  static Path sharedLibrary(String name, List<String> sources, List<String> libraries) {
    Optional<Path> built = KernelLibraries.given(name);
    if (built.isPresent()) {
      return built.get();
    }
    requireTools();
    Path output = TARGET.resolve(name);
    try {
      if (!isCurrent(output)) {
        build(output, sources, libraries);
      }
      return output;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void requireTools() {
    Optional<String> missing = missingTool();
    if (missing.isPresent()) {
      skip("The Metal double can't be built here: " + missing.get());
    }
  }

  /** Skips the test, or fails it where the tools are required. */
  static void skip(String message) {
    if (isRequired()) {
      throw new AssertionError(message + " (" + REQUIRE + " is set)");
    }
    throw new TestAbortedException(message);
  }

  /** What this machine lacks to build the double. */
  static Optional<String> missingTool() {
    if (KernelLibraries.given("").isPresent()) {
      return Optional.empty();
    }
    String platform = System.getProperty("os.name") + " " + System.getProperty("os.arch");
    if (!platform.equals("Linux amd64")) {
      return Optional.of("it is for Linux on x86-64; this is " + platform);
    }
    try {
      String output =
          run(List.of("gcc", "-x", "objective-c", "-include", "objc/objc.h", "-fsyntax-only", "-"));
      return output.isEmpty()
          ? Optional.empty()
          : Optional.of("gcc has no Objective-C; install the package gobjc");
    } catch (IOException e) {
      return Optional.of("gcc was not found; install the packages gcc and gobjc");
    }
  }

  static boolean isRequired() {
    return Boolean.parseBoolean(System.getenv(REQUIRE));
  }

  private static boolean isCurrent(Path output) throws IOException {
    if (!Files.exists(output)) {
      return false;
    }
    long built = Files.getLastModifiedTime(output).toMillis();
    try (Stream<Path> files = Files.walk(SOURCES)) {
      return files
          .filter(Files::isRegularFile)
          .allMatch(file -> file.toFile().lastModified() < built);
    }
  }

  private static void build(Path output, List<String> sources, List<String> libraries)
      throws IOException {
    Files.createDirectories(TARGET);
    List<String> command =
        new ArrayList<>(
            List.of("gcc", "-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-Wall", "-Werror"));
    command.addAll(List.of("-I" + SOURCES.resolve("msl")));
    command.addAll(List.of("-o", output.toString()));
    sources.forEach(source -> command.add(SOURCES.resolve("objc").resolve(source).toString()));
    libraries.forEach(library -> command.add("-l" + library));
    String messages = run(command);
    if (!messages.isEmpty()) {
      throw new AssertionError("Building " + output.getFileName() + ":\n" + messages);
    }
  }

  /** Runs a command with no input; what it prints, or its exit status if it fails silently. */
  private static String run(List<String> command) throws IOException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String output = new String(process.getInputStream().readAllBytes()).strip();
    try {
      int status = process.waitFor();
      return status != 0 && output.isEmpty() ? "exit status " + status : output;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
  }
}
