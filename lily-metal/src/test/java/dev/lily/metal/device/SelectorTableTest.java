package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.objc.FoundationSelectors;
import dev.lily.metal.objc.Selector;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The binding's messages against Apple's declarations, written down a second time. */
class SelectorTableTest {
  private static final Path HEADER =
      Path.of(System.getProperty("basedir", ""), "src/test/native/objc/apple_declarations.h");

  private static List<Selector> table() {
    return Stream.concat(FoundationSelectors.all().stream(), MetalSelectors.all().stream())
        .toList();
  }

  @TestFactory
  Stream<DynamicTest> matchesTheDeclaration() throws IOException {
    Map<String, String> declared = AppleDeclarations.read(HEADER);
    return table().stream()
        .map(
            selector ->
                DynamicTest.dynamicTest(
                    selector.toString(),
                    () ->
                        assertThat(selector.types()).isEqualTo(declared.get(selector.toString()))));
  }

  @Test
  void coversEveryDeclaration() throws IOException {
    Map<String, String> sent = new TreeMap<>();
    table().forEach(selector -> sent.put(selector.toString(), selector.types()));
    Map<String, String> declared = AppleDeclarations.read(HEADER);
    // Getters of what the binding only sets.
    declared
        .keySet()
        .removeIf(name -> isGetterOfASetter(name, declared) && !sent.containsKey(name));
    assertThat(sent.keySet()).containsExactlyElementsOf(declared.keySet());
  }

  private static boolean isGetterOfASetter(String method, Map<String, String> declared) {
    int space = method.indexOf(' ');
    String name = method.substring(space + 1);
    String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1) + ":";
    return declared.containsKey(method.substring(0, space + 1) + setter);
  }

  @Test
  void listsEverySelectorOfTheBinding() throws IllegalAccessException {
    assertThat(MetalSelectors.all()).containsExactlyElementsOf(constantsOf(MetalSelectors.class));
    assertThat(FoundationSelectors.all()).doesNotHaveDuplicates();
  }

  private static List<Selector> constantsOf(Class<?> type) throws IllegalAccessException {
    List<Selector> constants = new ArrayList<>();
    for (Field field : type.getDeclaredFields()) {
      if (Modifier.isStatic(field.getModifiers()) && field.getType() == Selector.class) {
        constants.add((Selector) field.get(null));
      }
    }
    return constants;
  }

  @Test
  void namesHaveOneColonForEachArgument() {
    for (Selector selector : table()) {
      long colons = selector.name().chars().filter(c -> c == ':').count();
      String shape = selector.signature().name().replace("_", "");
      assertThat(shape).as(selector.toString()).hasSize((int) colons + 1);
    }
  }
}
