package dev.lily.metal.objc;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * What an {@code NSError} says.
 *
 * @param domain for example {@code MTLCommandBufferErrorDomain}
 * @param code in the domain's own counting
 * @param description the system's text; a compiler's whole output
 */
public record NSError(String domain, long code, String description) {
  /** Stands for the error that a failed call did not give. */
  public static final NSError NONE = new NSError("", 0, "no error was given");

  /** Reads an error object; {@link #NONE} for nil. Call inside a pool. */
  public static NSError read(long error) {
    if (error == 0) {
      return NONE;
    }
    return new NSError(
        NSString.read(MessageSend.sendForLong(error, FoundationSelectors.DOMAIN)),
        MessageSend.sendForLong(error, FoundationSelectors.CODE),
        NSString.read(MessageSend.sendForLong(error, FoundationSelectors.LOCALIZED_DESCRIPTION)));
  }

  /** Reads what a call left in its {@code NSError **} argument. */
  public static NSError readFrom(MemorySegment slot) {
    return read(slot.get(JAVA_LONG, 0));
  }
}
