package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatException;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import dev.lily.spring.Nano;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;

/** What a user sees whose application cannot start. */
@ExtendWith(OutputCaptureExtension.class)
class FailureAnalysisTest {

  @TempDir Path directory;

  @Configuration(proxyBeanMethods = false)
  @ImportAutoConfiguration({LilyEngineAutoConfiguration.class, LilyChatAutoConfiguration.class})
  static class Application {
    public static void main(String... arguments) {
      application().run(arguments);
    }
  }

  private static SpringApplicationBuilder application() {
    return new SpringApplicationBuilder(Application.class)
        .web(WebApplicationType.NONE)
        .bannerMode(Banner.Mode.OFF);
  }

  private static String startup(CapturedOutput output, String... arguments) {
    assertThatException().isThrownBy(() -> application().run(arguments));
    assertThat(output).contains("APPLICATION FAILED TO START");
    return output.toString().substring(output.toString().indexOf("APPLICATION FAILED TO START"));
  }

  private static String model(Path directory) {
    return "--lily.model=" + directory;
  }

  private void copyModel() throws IOException {
    try (Stream<Path> files = Files.list(Nano.DIRECTORY)) {
      for (Path file : files.toList()) {
        Files.copy(file, directory.resolve(file.getFileName().toString()));
      }
    }
  }

  private void rewrite(String file, String target, String replacement) throws IOException {
    Path path = directory.resolve(file);
    String text = Files.readString(path);
    assertThat(text).contains(target);
    Files.writeString(path, text.replace(target, replacement));
  }

  @Test
  void advisesToNameAModel(CapturedOutput output) {
    assertThat(startup(output))
        .contains("the property lily.model is not set")
        .contains("lily.model=~/models/")
        .contains("set spring.ai.model.chat to another provider or to none");
  }

  @Test
  void advisesToCheckTheDirectory(CapturedOutput output) {
    assertThat(startup(output, model(directory.resolve("absent"))))
        .contains(directory.resolve("absent").toString())
        .contains("Check lily.model");
  }

  @Test
  void advisesToDownloadDamagedWeightsAgain(CapturedOutput output) throws IOException {
    copyModel();
    Path weights = directory.resolve("model.safetensors");
    try (FileChannel file = FileChannel.open(weights, StandardOpenOption.WRITE)) {
      file.truncate(file.size() / 2);
    }
    assertThat(startup(output, model(directory)))
        .contains(weights.toString())
        .contains("Download the named file again");
  }

  @Test
  void namesTheModelsThatItRuns(CapturedOutput output) throws IOException {
    copyModel();
    rewrite("config.json", "\"qwen3_5_moe\"", "\"llama\"");
    assertThat(startup(output, model(directory)))
        .contains("llama")
        .contains("Use a checkpoint of model type qwen3_5_moe");
  }

  @Test
  void advisesOnADamagedTokenizer(CapturedOutput output) throws IOException {
    copyModel();
    Files.writeString(directory.resolve("tokenizer.json"), "{\"version\": ");
    assertThat(startup(output, model(directory)))
        .contains("tokenizer.json")
        .contains("that belongs to its weights");
  }

  @Test
  void namesTheSettingsThatSaveMemory(CapturedOutput output) {
    assertThat(startup(output, model(Nano.DIRECTORY), "--lily.memory-limit=1MB"))
        .contains("does not fit into memory")
        .contains("Lower lily.context-length")
        .contains("lily.max-sessions")
        .contains("lily.memory-limit");
  }

  @Test
  void namesTheBackEndsThereAre(CapturedOutput output) {
    assertThat(startup(output, model(Nano.DIRECTORY), "--lily.backend=cuda"))
        .contains("'cuda'")
        .contains("cpu")
        .contains("Check lily.backend");
  }

  @Test
  void namesTheWrongProperty(CapturedOutput output) {
    assertThat(startup(output, model(Nano.DIRECTORY), "--lily.max-sessions=0"))
        .contains("Invalid value '0' for configuration property 'lily.max-sessions'")
        .contains("it must be at least 1");
  }

  @Test
  void namesTheFlagThatVectorKernelsNeed() throws IOException, InterruptedException {
    ProcessBuilder launch =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Application.class.getName(),
                model(Nano.DIRECTORY),
                "--lily.cpu.kernels=vector")
            .redirectErrorStream(true);
    launch.environment().keySet().removeAll(List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"));
    Process java = launch.start();
    String output = new String(java.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(java.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(java.exitValue()).isNotZero();
    assertThat(output)
        .contains("APPLICATION FAILED TO START")
        .contains("--add-modules jdk.incubator.vector")
        .contains("lily.cpu.kernels");
  }

  @Test
  void explainsAMissingVectorModuleAlsoWhereItSurfacesAsALinkageError() {
    VectorModuleFailureAnalyzer analyzer = new VectorModuleFailureAnalyzer();
    FailureAnalysis analysis =
        analyzer.analyze(
            new BeanCreationException(
                "x", new NoClassDefFoundError("jdk/incubator/vector/VectorSpecies")));
    assertThat(analysis.getAction()).contains("--add-modules jdk.incubator.vector");
    assertThat(analyzer.analyze(new NoClassDefFoundError("some/Other"))).isNull();
  }

  @Test
  void explainsForbiddenNativeAccess() {
    NativeAccessFailureAnalyzer analyzer = new NativeAccessFailureAnalyzer();
    FailureAnalysis analysis =
        analyzer.analyze(
            new BeanCreationException(
                "x", new IllegalCallerException("Illegal native access from: unnamed module @1")));
    assertThat(analysis.getAction()).contains("--enable-native-access=ALL-UNNAMED");
    assertThat(analyzer.analyze(new IllegalCallerException("other"))).isNull();
  }

  /** No back end of this machine refuses a type. */
  @Test
  void namesThePropertyOfKeysAndValuesThatABackEndCannotKeep() {
    UnsupportedKeyValueTypeException cause =
        new UnsupportedKeyValueTypeException(
            "metal", KeyValueType.INT8, EnumSet.of(KeyValueType.BF16));
    FailureAnalysis analysis = new BackendFailureAnalyzer().analyze(cause, cause);
    assertThat(analysis.getDescription())
        .contains("lily.kv-cache is 'int8'", "metal keeps keys and values in bf16 only");
    assertThat(analysis.getAction()).contains("lily.kv-cache", "lily.backend");
  }
}
