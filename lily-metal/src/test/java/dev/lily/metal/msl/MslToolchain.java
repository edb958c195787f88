package dev.lily.metal.msl;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** clang as a Metal compiler: preprocesses, checks and builds the kernels for the CPU. */
public final class MslToolchain {
  /** The kernels' source files, one per operation family, without {@code .metal}. */
  static final List<String> FAMILIES =
      List.of(
          "elementwise",
          "norm",
          "matmul",
          "matmul_tensor",
          "delta_rule",
          "attention",
          "attention_tensor",
          "experts",
          "experts_tensor",
          "sampling");

  /** How sources are named that use Metal 4's tensor operations. */
  private static final String TENSOR = "_tensor";

  private static final List<String> NAMES = List.of("clang++-19", "clang++-20", "clang++");
  private static final int LEAST_VERSION = 19;

  /** This module's directory; tests of other modules are told where it is. */
  private static final Path MODULE =
      Path.of(System.getProperty("lily.metal.dir", "")).toAbsolutePath();

  private static final Path NATIVE = MODULE.resolve("src/test/native/msl");
  private static final Path GPU = MODULE.resolve("src/test/native/gpu");
  private static final Path TRANSLATOR = MODULE.resolve("src/test/java/dev/lily/metal/msl");
  private static final Path WORK = MODULE.resolve("target/msl");

  // No vectorisation, so that each access in the source is one traced access of its own size.
  private static final List<String> TRACED =
      List.of(
          "-O1",
          "-fno-vectorize",
          "-fno-slp-vectorize",
          "-fsanitize-coverage=func,trace-loads,trace-stores");

  private static final List<String> UNTRACED = List.of("-O2", "-DLILY_UNTRACED");

  // What the functions of the language become on a processor that has it; the bits stay the same.
  private static final List<String> FMA = List.of("-mfma", "-mavx2");

  private final String clang;
  private final Path work;

  private MslToolchain(String clang, Path work) {
    this.clang = clang;
    this.work = work;
  }

  /** What a process printed and how it ended. */
  record Outcome(int status, String output) {
    boolean succeeded() {
      return status == 0;
    }
  }

  /**
   * The toolchain, with this module's {@code target} folder for what it makes.
   *
   * @return empty if no clang of version 19 or newer is installed
   */
  public static Optional<MslToolchain> find() {
    for (String name : NAMES) {
      try {
        Outcome version = run(List.of(name, "-dumpversion"));
        if (version.succeeded()
            && Integer.parseInt(version.output().strip().split("\\.", 2)[0]) >= LEAST_VERSION) {
          return Optional.of(new MslToolchain(name, WORK));
        }
      } catch (UncheckedIOException e) {
        continue; // not installed
      }
    }
    return Optional.empty();
  }

  /** A kernel source with the common part before it, as it is given to Metal. */
  public static String source(String family) {
    return "#line 1 \"common.metal\"\n"
        + resource("common")
        + (family.endsWith(TENSOR)
            ? "#line 1 \"common_tensor.metal\"\n" + resource("common_tensor")
            : "")
        + "#line 1 \""
        + family
        + ".metal\"\n"
        + resource(family);
  }

  private static String resource(String family) {
    String name = "/dev/lily/metal/kernels/" + family + ".metal";
    try (InputStream in = MslToolchain.class.getResourceAsStream(name)) {
      return new String(Objects.requireNonNull(in, name).readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs the preprocessor over a source. */
  MslTranslator preprocess(String name, String source) {
    boolean tensors = name.replace(".metal", "").endsWith(TENSOR);
    Path in = write(name + ".metal", source);
    Path out = work.resolve(name + ".ii");
    List<String> command =
        List.of(
            clang,
            "-E",
            "-x",
            "c++",
            "-std=c++20",
            "-nostdinc",
            "-nostdinc++",
            "-I",
            NATIVE.resolve("stubs").toString(),
            "-D__METAL_VERSION__=" + (tensors ? 400 : 310),
            in.toString(),
            "-o",
            out.toString());
    Outcome outcome = run(command);
    if (!outcome.succeeded()) {
      throw new IllegalStateException(outcome.output());
    }
    return new MslTranslator(read(out), tensors);
  }

  /** Type check; the output holds every complaint. */
  Outcome check(String name, String source) {
    MslTranslator translator;
    try {
      translator = preprocess(name, source);
    } catch (IllegalStateException e) {
      return new Outcome(1, e.getMessage());
    }
    List<String> violations = translator.violations();
    if (!violations.isEmpty()) {
      return new Outcome(1, String.join("\n", violations));
    }
    Path file = write(name + ".check.cpp", translator.toCheck());
    List<String> command = new ArrayList<>(List.of(clang, "-fsyntax-only"));
    command.addAll(warnings());
    command.addAll(List.of("-Werror", "-nostdinc", "-nostdinc++"));
    command.addAll(language(file));
    return run(command);
  }

  private static List<String> warnings() {
    return List.of(
        "-Wall",
        "-Wextra",
        "-Wshadow",
        "-Wconversion",
        "-Wno-unused-function",
        "-Wno-tautological-compare",
        "-Wno-unused-const-variable",
        "-Wno-unknown-pragmas",
        "-Wno-sign-conversion",
        "-Wno-implicit-int-float-conversion",
        "-Wno-ignored-attributes",
        "-Wno-duplicate-decl-specifier",
        "-Wno-c99-extensions");
  }

  private static List<String> language(Path file) {
    return List.of(
        "-x",
        "c++",
        "-std=c++20",
        "-I",
        NATIVE.resolve("include").toString(),
        "-I",
        NATIVE.toString(),
        "-I",
        GPU.toString(),
        file.toString());
  }

  /**
   * Builds all kernels and the runtime into one library (see {@code lily_kernel_abi.h}).
   *
   * @return the library; an existing one is reused if it was built from the same sources
   */
  public Path buildLibrary() {
    return build("lily-kernels", units());
  }

  /**
   * As {@link #buildLibrary}, without the checks of memory accesses: for long runs that ask for
   * numbers only. It gives the same ones.
   */
  public Path buildFastLibrary() {
    List<String> options = new ArrayList<>(UNTRACED);
    if (hasFma()) {
      options.addAll(FMA);
    }
    return build("lily-kernels-fast", units(), options);
  }

  private static boolean hasFma() {
    Path info = Path.of("/proc/cpuinfo");
    return Files.exists(info) && read(info).matches("(?s).*\\bfma\\b.*\\bavx2\\b.*");
  }

  private static List<Unit> units() {
    return FAMILIES.stream().map(f -> new Unit(f, source(f))).toList();
  }

  /**
   * Compiles all kernels for an NVIDIA GPU of compute capability 9.0: PTX with an entry per kernel,
   * named as the kernel, that takes the address of each buffer in the order of their indices.
   * Threadgroup variables are static shared memory, a threadgroup block is the launch's dynamic
   * one. Loops with known bounds are unrolled, so that small arrays stay in registers.
   *
   * @return the PTX file
   */
  public Path buildPtx() {
    MslGpuSource source = new MslGpuSource();
    FAMILIES.forEach(family -> source.add(family, preprocess(family, source(family))));
    Path ptx = work.resolve("lily-kernels.ptx");
    List<String> command =
        new ArrayList<>(
            List.of(
                clang,
                "--target=nvptx64-nvidia-cuda",
                "-march=sm_90",
                "-DLILY_GPU",
                "-S",
                "-O3",
                "-ffp-contract=off",
                "-fconvergent-functions",
                "-gline-directives-only",
                "-mllvm",
                "-unroll-threshold=10000",
                "-nostdinc",
                "-nostdinc++",
                "-w",
                "-o",
                ptx.toString()));
    command.addAll(language(write("lily-kernels.gpu.cpp", source.text())));
    require(run(command));
    write("lily-kernels.ptx", source.withThreadLimits(read(ptx)));
    return ptx;
  }

  /**
   * Builds the library that runs the kernels on an NVIDIA GPU, through the interface of {@link
   * #buildLibrary}. It loads {@code lily-kernels.cubin} or {@code .ptx} from its own folder when
   * the first kernel runs.
   */
  public Path buildGpuLibrary() {
    Path target = work.resolve("liblily-gpu.so");
    List<String> link = new ArrayList<>(List.of(clang, "-x", "none", "-shared"));
    link.addAll(List.of("-nostdlib++", "-o", target.toString()));
    for (String family : FAMILIES) {
      String table = preprocess(family, source(family)).toTable();
      link.add(compile("gpu", write(family + ".table.cpp", table), List.of("-O1", "-w")));
    }
    link.add(
        compile(
            "gpu",
            GPU.resolve("executor.cpp"),
            List.of("-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti")));
    link.add("-ldl");
    link.add("-lpthread");
    require(run(link));
    return target;
  }

  record Unit(String name, String source) {}

  private static void appendFiles(Path directory, String pattern, StringBuilder to) {
    try (Stream<Path> files = Files.walk(directory)) {
      files.filter(f -> f.toString().matches(pattern)).sorted().forEach(f -> to.append(read(f)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Path build(String library, List<Unit> units) {
    return build(library, units, TRACED);
  }

  private Path build(String library, List<Unit> units, List<String> options) {
    Path target = work.resolve("lib" + library + ".so");
    StringBuilder everything = new StringBuilder(options.toString());
    units.forEach(unit -> everything.append(unit.source()));
    appendFiles(NATIVE, ".*\\.(h|cpp)", everything);
    appendFiles(TRANSLATOR, ".*/Msl\\w+\\.java", everything);
    Path stamp = work.resolve(library + ".stamp");
    String digest =
        Integer.toHexString(everything.toString().hashCode()) + "-" + everything.length();
    if (Files.exists(target) && Files.exists(stamp) && read(stamp).equals(digest)) {
      return target;
    }
    List<String> objects =
        new ArrayList<>(
            units.parallelStream().map(unit -> compile(library, unit, options)).toList());
    List<String> runtime = new ArrayList<>(List.of("-O2", "-Wno-ignored-attributes", "-Wno-psabi"));
    options.stream().filter(option -> option.startsWith("-D")).forEach(runtime::add);
    objects.add(compile(library, NATIVE.resolve("runtime.cpp"), runtime));
    List<String> link =
        new ArrayList<>(List.of(clang, "-shared", "-Wl,-Bsymbolic", "-o", target.toString()));
    link.addAll(objects);
    require(run(link));
    write(library + ".stamp", digest);
    return target;
  }

  private String compile(String library, Unit unit, List<String> options) {
    List<String> all = new ArrayList<>(options);
    all.addAll(List.of("-ffp-contract=off", "-w"));
    return compile(
        library,
        write(unit.name() + ".run.cpp", preprocess(unit.name(), unit.source()).toRun()),
        all);
  }

  private String compile(String library, Path file, List<String> options) {
    Path object = work.resolve(library + "-" + file.getFileName() + ".o");
    List<String> command =
        new ArrayList<>(List.of(clang, "-c", "-g1", "-fPIC", "-o", object.toString()));
    command.addAll(options);
    command.addAll(language(file));
    require(run(command));
    return object.toString();
  }

  private static void require(Outcome outcome) {
    if (!outcome.succeeded()) {
      throw new IllegalStateException(outcome.output());
    }
  }

  private Path write(String name, String content) {
    try {
      Files.createDirectories(work);
      return Files.writeString(work.resolve(name), content);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Outcome run(List<String> command) {
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (!process.waitFor(5, TimeUnit.MINUTES)) {
        process.destroyForcibly();
        return new Outcome(-1, "did not end: " + command);
      }
      return new Outcome(process.exitValue(), output);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return new Outcome(-1, "interrupted");
    }
  }
}
