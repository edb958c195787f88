package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.objc.FoundationSelectors;
import dev.lily.metal.objc.Selector;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.extension.ExtendWith;

/** The double implements what the binding sends, with the types that the compiler saw. */
@ExtendWith(MetalDoubleExtension.class)
class DoubleSelectorTest {

  @TestFactory
  Stream<DynamicTest> isImplementedWithTheSameTypes(MetalDouble metal) {
    return Stream.concat(FoundationSelectors.all().stream(), MetalSelectors.all().stream())
        .map(
            selector ->
                DynamicTest.dynamicTest(selector.toString(), () -> compare(metal, selector)));
  }

  private static void compare(MetalDouble metal, Selector selector) {
    String types = metal.methodTypes(selector.receiver(), selector.name()).orElse("missing");
    assertThat(normalized(types)).isEqualTo(expected(selector.types()));
  }

  /** GCC on Linux: offsets after each type, const marks, receiver and selector in second place. */
  private static String normalized(String types) {
    return types
        .replaceAll("[0-9]", "")
        .replace("r", "")
        .replace('C', 'B')
        .replace('L', 'Q')
        .replace('l', 'q')
        .replaceFirst("@:", "")
        .replaceAll("\\{[^=]*=", "{=");
  }

  /** Blocks are unknown to GCC, and classes are objects to it. */
  private static String expected(String types) {
    return types.replace("@?", "@").replaceAll("\\{[^=]*=", "{=");
  }
}
