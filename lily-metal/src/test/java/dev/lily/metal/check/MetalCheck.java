package dev.lily.metal.check;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.MetalBackendProvider;
import dev.lily.metal.device.DispatchType;
import dev.lily.metal.device.GpuFamily;
import dev.lily.metal.device.LanguageVersion;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalException;
import dev.lily.metal.device.SelectorCheck;
import dev.lily.metal.kernel.KernelCheck;
import dev.lily.metal.objc.OperatingSystem;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * The part of {@code mac-check.sh} that talks to the GPU. Each step prints one line that begins
 * with PASS, FAIL or SKIP; the exit status is 1 if one failed.
 *
 * <p>On a Mac the steps use its GPU. With {@code --double} they use the double of Metal, which
 * proves that the check itself works and says nothing about a Mac.
 */
public final class MetalCheck {
  private static final String USAGE =
      """
      Usage: MetalCheck [--double] STEP...    steps: device selectors sources kernels dispatches memory watchdog
             MetalCheck [--double] launch FILE    writes JVM and class path for the shell""";

  private static final int FIRST_MACOS_WITH_MSL_4 = 26;
  private static final double MEBIBYTE = 1 << 20;

  private final Report report;
  private final boolean isDouble;

  MetalCheck(PrintStream out, boolean isDouble) {
    report = new Report(out);
    this.isDouble = isDouble;
  }

  /** Runs the steps named. */
  public static void main(String[] arguments) throws IOException {
    List<String> steps = new ArrayList<>(Arrays.asList(arguments));
    boolean isDouble = steps.remove("--double");
    if (steps.isEmpty()) {
      System.err.println(USAGE);
      System.exit(2);
    }
    if (steps.getFirst().equals("launch")) {
      Files.writeString(Path.of(steps.get(1)), launch(isDouble));
      return;
    }
    if (isDouble) {
      MetalDouble.install().useKernels();
    }
    MetalCheck check =
        new MetalCheck(new PrintStream(System.out, true, StandardCharsets.UTF_8), isDouble);
    System.exit(check.run(steps) == 0 ? 0 : 1);
  }

  /** Variables for the shell: how Maven would start a test's JVM. */
  private static String launch(boolean isDouble) {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String text =
        "JAVA=" + quoted(java) + "\nCLASS_PATH=" + quoted(System.getProperty("java.class.path"));
    if (isDouble) {
      MetalDouble metal = MetalDouble.install();
      text += "\nDOUBLE=" + quoted(metal.path().toString());
      text += "\nDOUBLE_KERNELS=" + quoted(metal.useKernels().toString());
    }
    return text + "\n";
  }

  private static String quoted(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }

  /** Runs steps; the number of those that failed. */
  int run(List<String> steps) {
    for (String step : steps) {
      switch (step) {
        case "device" -> report.run(step, this::device);
        case "selectors" -> report.run(step, this::selectors);
        case "sources" -> report.run(step, this::sources);
        case "kernels" -> report.run(step, this::kernels);
        case "dispatches" -> report.run(step, this::dispatches);
        case "memory" -> report.run(step, this::memory);
        case "watchdog" -> report.run(step, this::watchdog);
        default -> throw new IllegalArgumentException("Unknown step " + step + "\n" + USAGE);
      }
    }
    return report.failures();
  }

  private void device() {
    try (MetalDevice device = MetalDevice.open()) {
      report.detail("architecture            " + device.architecture());
      for (GpuFamily family : GpuFamily.values()) {
        report.detail("family %-16s %s".formatted(family, device.supports(family)));
      }
      report.detail("working set, at most    " + mebibytes(device.recommendedMaxWorkingSetBytes()));
      report.detail("one buffer, at most     " + mebibytes(device.maxBufferBytes()));
      report.detail("threadgroup memory      " + device.maxThreadgroupBytes() + " bytes");
      report.detail("page                    " + device.pageBytes() + " bytes");
      report.detail("residency sets          " + device.residencySet(1).isPresent());
      report.pass("device", device.name());
    }
  }

  private static String mebibytes(long bytes) {
    return String.format(Locale.ROOT, "%.0f MiB", bytes / MEBIBYTE);
  }

  private void selectors() {
    SelectorCheck.Result result = SelectorCheck.run();
    result.problems().forEach(report::detail);
    String text =
        "%d messages understood, the types of %d compared"
            .formatted(result.understood(), result.compared());
    if (result.problems().isEmpty()) {
      report.pass("selectors", text);
    } else {
      report.fail("selectors", text + ", " + result.problems().size() + " problems");
    }
  }

  private void sources() {
    try (MetalDevice device = MetalDevice.open()) {
      for (LanguageVersion version : LanguageVersion.values()) {
        String step = "sources as " + version;
        if (version == LanguageVersion.MSL_4_0 && !hasMsl4()) {
          report.skip(step, "this version needs macOS " + FIRST_MACOS_WITH_MSL_4);
          continue;
        }
        sources(step, KernelCheck.sources(device, version));
      }
    }
  }

  private static boolean hasMsl4() {
    return OperatingSystem.isAtLeast(FIRST_MACOS_WITH_MSL_4, 0);
  }

  private void sources(String step, List<KernelCheck.Source> sources) {
    int refused = 0;
    for (KernelCheck.Source source : sources) {
      report.detail("%-20s %8.1f ms".formatted(source.name(), source.micros() / 1e3));
      if (!source.problem().isEmpty()) {
        refused++;
        source.problem().lines().forEach(report::detail);
      }
    }
    if (refused == 0) {
      report.pass(step, sources.size() + " compiled");
    } else {
      report.fail(step, refused + " of " + sources.size() + " refused");
    }
  }

  private void kernels() {
    List<KernelCheck.Kernel> kernels;
    try (MetalDevice device = MetalDevice.open()) {
      kernels =
          KernelCheck.kernels(
              device, hasMsl4() ? LanguageVersion.MSL_4_0 : LanguageVersion.MSL_3_2);
    }
    int problems = 0;
    long micros = 0;
    report.detail("%-34s %7s %16s %10s".formatted("kernel", "threads", "threadgroup B", "ms"));
    for (KernelCheck.Kernel kernel : kernels) {
      micros += kernel.micros();
      report.detail(
          "%-34s %7d %16d %10.1f"
              .formatted(
                  kernel.name(),
                  kernel.maxThreads(),
                  kernel.threadgroupBytes(),
                  kernel.micros() / 1e3));
      if (!kernel.problem().isEmpty()) {
        problems++;
        kernel.problem().lines().forEach(report::detail);
      }
    }
    String text =
        String.format(
            Locale.ROOT, "%d compiled in %.1f s", kernels.size() - problems, micros / 1e6);
    if (problems == 0) {
      report.pass("kernels", text);
    } else {
      report.fail("kernels", text + ", " + problems + " problems");
    }
  }

  private void dispatches() {
    try (MetalDevice device = MetalDevice.open()) {
      report.detail("serial                  " + times(device, DispatchType.SERIAL, false));
      report.detail("concurrent              " + times(device, DispatchType.CONCURRENT, false));
      report.detail("concurrent, barriers    " + times(device, DispatchType.CONCURRENT, true));
      report.pass("dispatches", DispatchTimes.NUM_DISPATCHES + " a command buffer, medians");
    }
  }

  private DispatchTimes.Times times(MetalDevice device, DispatchType type, boolean hasBarriers) {
    return DispatchTimes.measure(device, type, hasBarriers, isDouble ? 2 : 31);
  }

  /** Twice: what Metal keeps for itself after the first time must not grow. */
  private void memory() {
    long before = allocatedBytes();
    long open = runTinyModel();
    long once = allocatedBytes();
    runTinyModel();
    long twice = allocatedBytes();
    String text =
        String.format(
            Locale.ROOT,
            "%,d bytes before, %,d while a model of three layers is open, %,d after, %,d after a second one",
            before,
            open,
            once,
            twice);
    if (open <= before) {
      report.fail("memory", text + "; the open model is not counted");
    } else if (once >= open || twice > once) {
      report.fail("memory", text + "; something was not given back");
    } else {
      report.pass("memory", text);
    }
  }

  /** Bytes in use while it is open. */
  private static long runTinyModel() {
    try (TinyModel model = new TinyModel(new MetalBackendProvider().open(BackendOptions.DEFAULT))) {
      PageTable pages = new PageTable();
      pages.add(3);
      model.state().clearSlot(0);
      model
          .state()
          .beginSampling(0, SamplingParameters.of(SamplingOptions.GREEDY, 0, -1), new int[0]);
      forward(model, pages, 0, 5, 80, 31, 2, 47);
      forward(model, pages, 5, RowPlan.PREVIOUS_TOKEN);
      return allocatedBytes();
    }
  }

  private static long allocatedBytes() {
    try (MetalDevice device = MetalDevice.open()) {
      return device.currentAllocatedBytes();
    }
  }

  private static void forward(TinyModel model, PageTable pages, int position, int... tokens) {
    RowPlan plan = new RowPlan(TinyModel.LIMITS);
    plan.add(tokens, 0, tokens.length, position, pages, 0, 1, 0);
    model.forward(plan, null);
  }

  private void watchdog() {
    LongPass pass = isDouble ? new LongPass(8, 64, 64) : new LongPass(512, 2048, 8192);
    List<Double> completed = new ArrayList<>();
    try {
      double longest = pass.run(isDouble ? 0.1 : 5, isDouble ? 4 : 1 << 14, completed::add);
      report.pass(
          "watchdog",
          String.format(Locale.ROOT, "a prefill pass of %.2f s of GPU time was let run", longest));
    } catch (MetalException e) {
      report.detail("GPU seconds of the passes before: " + completed);
      report.fail("watchdog", String.valueOf(e.getMessage()));
    }
  }
}
