package dev.lily.metal.objc;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** On a machine that is not a Mac every class loads, and opening the GPU says why it can't. */
@DisabledOnOs(value = OS.MAC, disabledReason = "Macs have the runtime")
class WithoutRuntimeTest {

  @Test
  void everyClassLoadsAndOpeningSaysWhy() throws Exception {
    String substitute = System.clearProperty(ObjcRuntime.LIBRARY_PROPERTY);
    try (URLClassLoader loader = freshLoader()) {
      List<String> names = classNames("dev/lily/metal/objc", "dev/lily/metal/device");
      assertThat(names).hasSizeGreaterThan(30);
      for (String name : names) {
        assertThat(Class.forName(name, true, loader).getName()).isEqualTo(name);
      }
      Class<?> device = Class.forName("dev.lily.metal.device.MetalDevice", true, loader);
      assertThat(thrownByOpen(device))
          .hasMessage(
              "Opening the GPU: the Objective-C runtime is part of macOS; this is "
                  + System.getProperty("os.name"));
    } finally {
      if (substitute != null) {
        System.setProperty(ObjcRuntime.LIBRARY_PROPERTY, substitute);
      }
    }
  }

  private static Throwable thrownByOpen(Class<?> device) throws ReflectiveOperationException {
    try {
      device.getMethod("open").invoke(null);
      throw new AssertionError("opened a GPU");
    } catch (InvocationTargetException e) {
      assertThat(e.getCause().getClass().getSimpleName()).isEqualTo("DeviceUnavailableException");
      return e.getCause();
    }
  }

  /** Loads everything anew, so that what other tests initialised does not count. */
  private static URLClassLoader freshLoader() throws IOException {
    List<URL> urls = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
      urls.add(Path.of(entry).toUri().toURL());
    }
    return new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
  }

  private static List<String> classNames(String... packages)
      throws IOException, URISyntaxException {
    URI marker = ObjcRuntime.class.getResource("ObjcRuntime.class").toURI();
    Path root = Path.of(marker).getParent().resolve("../../../..").normalize();
    List<String> names = new ArrayList<>();
    for (String folder : packages) {
      try (Stream<Path> files = Files.list(root.resolve(folder))) {
        files
            .map(file -> folder + "/" + file.getFileName())
            .filter(file -> file.endsWith(".class") && !file.endsWith("package-info.class"))
            .map(file -> file.substring(0, file.length() - 6).replace('/', '.'))
            .forEach(names::add);
      }
    }
    return names;
  }
}
