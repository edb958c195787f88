package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The kernels as PTX; that they compute the right values there is for a machine with a GPU. */
class GpuBuildTest {
  private static final Pattern ENTRY =
      Pattern.compile("\\.visible \\.entry (\\w+)\\([^)]*\\)\\s*\\.maxntid \\d+, 1, 1");

  @Test
  void compilesEveryKernelForAnNvidiaGpu() throws IOException {
    String ptx = Files.readString(Tools.toolchain().buildPtx());
    TreeSet<String> entries = new TreeSet<>();
    Matcher entry = ENTRY.matcher(ptx);
    while (entry.find()) {
      entries.add(entry.group(1));
    }
    assertThat(entries).containsExactlyElementsOf(Tools.kernels().names());
    assertThat(ptx).contains("mma.sync").doesNotContain(".extern .func");
  }
}
