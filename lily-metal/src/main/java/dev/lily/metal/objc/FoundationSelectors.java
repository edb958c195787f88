package dev.lily.metal.objc;

import java.util.List;

/** Every message that this package sends. */
public final class FoundationSelectors {
  static final Selector ALLOC = Selector.of("+NSObject", "alloc", "@");
  static final Selector NEW = Selector.of("+NSObject", "new", "@");
  static final Selector RESPONDS_TO_SELECTOR = Selector.of("NSObject", "respondsToSelector:", "B:");
  static final Selector INIT_WITH_BYTES =
      Selector.of("NSString", "initWithBytes:length:encoding:", "@^vQQ");
  static final Selector UTF8_STRING = Selector.of("NSString", "UTF8String", "*");
  static final Selector CODE = Selector.of("NSError", "code", "q");
  static final Selector DOMAIN = Selector.of("NSError", "domain", "@");
  static final Selector LOCALIZED_DESCRIPTION = Selector.of("NSError", "localizedDescription", "@");
  static final Selector COUNT = Selector.of("NSArray", "count", "Q");
  static final Selector OBJECT_AT_INDEX = Selector.of("NSArray", "objectAtIndex:", "@Q");
  static final Selector PROCESS_INFO = Selector.of("+NSProcessInfo", "processInfo", "@");
  static final Selector IS_OPERATING_SYSTEM_AT_LEAST_VERSION =
      Selector.of(
          "NSProcessInfo", "isOperatingSystemAtLeastVersion:", "B{NSOperatingSystemVersion=qqq}");

  private static final List<Selector> ALL =
      List.of(
          ALLOC,
          NEW,
          RESPONDS_TO_SELECTOR,
          INIT_WITH_BYTES,
          UTF8_STRING,
          CODE,
          DOMAIN,
          LOCALIZED_DESCRIPTION,
          COUNT,
          OBJECT_AT_INDEX,
          PROCESS_INFO,
          IS_OPERATING_SYSTEM_AT_LEAST_VERSION);

  private FoundationSelectors() {}

  /** The whole table, for the tests and the check on a real Mac. */
  public static List<Selector> all() {
    return ALL;
  }
}
