package dev.lily.metal.objc;

/**
 * A method as this binding calls it. Keep it in a static final field: a record's fields are
 * constants to the JIT. Making one never fails for want of a runtime.
 *
 * @param receiver class or protocol that declares it; a leading {@code +} marks a class method
 * @param name for example {@code setBuffer:offset:atIndex:}
 * @param types Objective-C type encodings, result first, without receiver and selector; {@code B}
 *     for BOOL on every processor
 * @param signature the shape that follows from the types
 * @param address the registered selector; 0 without a runtime
 */
public record Selector(
    String receiver, String name, String types, Signature signature, long address) {

  /** Registers the name with the runtime, if there is one. */
  public static Selector of(String receiver, String name, String types) {
    return new Selector(
        receiver, name, types, Signature.of(types), ObjcRuntime.registerSelector(name));
  }

  @Override
  public String toString() {
    return receiver + " " + name;
  }
}
