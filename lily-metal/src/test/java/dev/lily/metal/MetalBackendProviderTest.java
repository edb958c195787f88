package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.backend.Availability.Unavailable;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
    "Mac OS X, aarch64, 15.0, 'Metal kernels are not part of this build yet'",
    "Mac OS X, aarch64, 26, 'Metal kernels are not part of this build yet'",
  })
  void saysWhyItCannotRun(String osName, String arch, String version, String reason) {
    Unavailable unavailable = MetalBackendProvider.check(osName, arch, version);
    assertThat(unavailable.reason()).isEqualTo(reason);
    assertThat(unavailable.remedy()).containsIgnoringCase("CPU back end");
  }

  @Test
  void refusesToOpenWithReasonAndRemedy() {
    assertThatExceptionOfType(BackendException.class)
        .isThrownBy(() -> new MetalBackendProvider().open(BackendOptions.DEFAULT))
        .withMessageStartingWith("Opening back end 'metal': Metal ")
        .withMessageContaining("lily.backend=cpu");
  }
}
