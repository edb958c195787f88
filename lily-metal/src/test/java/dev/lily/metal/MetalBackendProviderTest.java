package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.backend.Availability.Unavailable;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import dev.lily.metal.objc.ObjcRuntime;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MetalBackendProviderTest {

  @Test
  void isFoundByTheServiceLoader() {
    assertThat(ServiceLoader.load(BackendProvider.class))
        .filteredOn(provider -> provider.id().equals("metal"))
        .singleElement()
        .isInstanceOf(MetalBackendProvider.class);
  }

  @ParameterizedTest
  @CsvSource({
    "Linux, amd64, 6.8.0, 'Metal exists on macOS only; this is Linux'",
    "Windows 11, amd64, 10.0, 'Metal exists on macOS only; this is Windows 11'",
    "'', '', '', 'Metal exists on macOS only; this is unknown'",
    "Mac OS X, x86_64, 15.1, 'Metal kernels need Apple silicon; this JVM runs as x86_64'",
    "Mac OS X, aarch64, 14.7.2, 'Metal kernels need macOS 15 or newer; this is macOS 14.7.2'",
    "Mac OS X, aarch64, strange, 'Metal kernels need macOS 15 or newer; this is macOS strange'",
  })
  void saysWhyItCannotRun(String osName, String arch, String version, String reason) {
    Unavailable unavailable = MetalBackendProvider.check(osName, arch, version).orElseThrow();
    assertThat(unavailable.reason()).isEqualTo(reason);
    assertThat(unavailable.remedy()).containsIgnoringCase("CPU back end");
  }

  @ParameterizedTest
  @ValueSource(strings = {"15.0", "15", "26.1"})
  void findsNothingAmissOnARecentMac(String version) {
    assertThat(MetalBackendProvider.check("Mac OS X", "aarch64", version)).isEmpty();
  }

  @Test
  @DisabledOnOs(value = OS.MAC, disabledReason = "Macs have Metal")
  void refusesToOpenWithReasonAndRemedy() {
    String substitute = System.clearProperty(ObjcRuntime.LIBRARY_PROPERTY);
    try {
      refusesToOpen();
    } finally {
      if (substitute != null) {
        System.setProperty(ObjcRuntime.LIBRARY_PROPERTY, substitute);
      }
    }
  }

  private static void refusesToOpen() {
    assertThat(new MetalBackendProvider().availability()).isInstanceOf(Unavailable.class);
    assertThatExceptionOfType(BackendException.class)
        .isThrownBy(() -> new MetalBackendProvider().open(BackendOptions.DEFAULT))
        .withMessageStartingWith("Opening back end 'metal': Metal ")
        .withMessageContaining("lily.backend=cpu");
  }
}
