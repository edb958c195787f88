package dev.lily.metal.objc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(MetalDoubleExtension.class)
class ObjcRuntimeTest {

  @ParameterizedTest
  @ValueSource(strings = {"", "kernel void f() {}\n", "Zürich, 東京, \uD83E\uDD86"})
  void passesTextBothWays(String text) {
    try (NSString string = NSString.of(text)) {
      assertThat(NSString.read(string.id())).isEqualTo(text);
    }
  }

  @Test
  void readsNilAsNothing() {
    assertThat(NSString.read(0)).isEmpty();
    assertThat(NSError.read(0)).isEqualTo(NSError.NONE);
  }

  @Test
  void findsClassesAndSaysWhichIsMissing() {
    assertThat(ObjcRuntime.unavailableReason()).isNull();
    assertThat(ObjcRuntime.findClass("NSString")).isNotZero();
    assertThat(ObjcRuntime.findClass("NSNothing")).isZero();
    assertThatExceptionOfType(ObjcException.class)
        .isThrownBy(() -> ObjcRuntime.requireClass("NSNothing"))
        .withMessage("Class NSNothing does not exist on this system");
  }

  @Test
  void givesAReferenceBackOnce(MetalDouble metal) {
    ObjcObject object = ObjcObject.newInstance("NSArray");
    long id = object.id();
    assertThat(NSArray.count(id)).isZero();
    ObjcObject.retain(id);
    object.close();
    object.close();
    assertThat(object.isClosed()).isTrue();
    assertThat(metal.get("live")).isEqualTo(1);
    assertThatIllegalStateException().isThrownBy(object::id).withMessage("ObjcObject is closed");
    ObjcObject.release(id);
    assertThat(metal.get("live")).isZero();
  }

  @Test
  void takesNoNilForAnObject() {
    assertThatIllegalArgumentException().isThrownBy(() -> new ObjcObject(0));
  }

  @Test
  void knowsWhatAnObjectAnswers() {
    try (NSString string = NSString.of("x")) {
      assertThat(ObjcObject.respondsTo(string.id(), FoundationSelectors.UTF8_STRING)).isTrue();
      assertThat(ObjcObject.respondsTo(string.id(), FoundationSelectors.COUNT)).isFalse();
    }
  }

  @Test
  void closesPoolsLikeBrackets(MetalDouble metal) {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      processInfo();
      try (AutoreleasePool _ = AutoreleasePool.open()) {
        processInfo();
        assertThat(metal.get("pools")).isEqualTo(2);
        assertThat(metal.get("live")).isEqualTo(2);
      }
      assertThat(metal.get("live")).isEqualTo(1);
    }
    assertThat(metal.get("live")).isZero();
  }

  private static void processInfo() {
    MessageSend.sendForLong(
        ObjcRuntime.requireClass("NSProcessInfo"), FoundationSelectors.PROCESS_INFO);
  }

  @Test
  void closesAPoolOnItsOwnThreadOnly() throws InterruptedException {
    AutoreleasePool pool = AutoreleasePool.open();
    Throwable[] thrown = new Throwable[1];
    Thread other =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    pool.close();
                  } catch (IllegalStateException e) {
                    thrown[0] = e;
                  }
                });
    other.join();
    assertThat(thrown[0]).hasMessageContaining("must be closed there");
    pool.close();
    pool.close();
  }

  @Test
  void comparesSystemVersions(MetalDouble metal) {
    metal.set("macos", 15);
    assertThat(OperatingSystem.isAtLeast(15, 0)).isTrue();
    assertThat(OperatingSystem.isAtLeast(16, 0)).isFalse();
    assertThat(OperatingSystem.pageBytes()).isPositive();
  }

  @Test
  void saysWhichFunctionIsMissing() {
    CFunction missing = CFunction.in(ObjcRuntime.library(), "no_such_function");
    assertThat(missing.isPresent()).isFalse();
    assertThatExceptionOfType(ObjcException.class)
        .isThrownBy(missing::callForLong)
        .withMessage("Calling no_such_function: no loaded library has it");
  }

  @Test
  void refusesSignaturesWithoutAHandle() {
    assertThat(Signature.of("v@QQ")).isEqualTo(Signature.V_LLL);
    assertThat(Signature.of("@^vQQ@?")).isEqualTo(Signature.L_LLLL);
    assertThat(Signature.of("v{MTLSize=QQQ}{MTLSize=QQQ}")).isEqualTo(Signature.V_SS);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Signature.of("ddd"))
        .withMessageContaining("'ddd' (shape D_DD)");
    assertThatIllegalArgumentException().isThrownBy(() -> Signature.of("vf"));
  }
}
