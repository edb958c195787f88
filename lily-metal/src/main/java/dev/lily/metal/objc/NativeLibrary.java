package dev.lily.metal.objc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import org.jspecify.annotations.Nullable;

/**
 * A loaded library, or the reason why it could not be loaded. Libraries stay loaded until the JVM
 * ends.
 */
public final class NativeLibrary {
  private final @Nullable SymbolLookup lookup;
  private final @Nullable String unavailableReason;

  private NativeLibrary(@Nullable SymbolLookup lookup, @Nullable String unavailableReason) {
    this.lookup = lookup;
    this.unavailableReason = unavailableReason;
  }

  /**
   * A framework of macOS. Its file exists only in the loader's shared cache; loading by path works
   * all the same.
   *
   * @param name for example {@code Metal}
   */
  public static NativeLibrary framework(String name) {
    if (ObjcRuntime.isSubstituted()) {
      return ObjcRuntime.library();
    }
    return load("/System/Library/Frameworks/" + name + ".framework/" + name);
  }

  /** Loads by path; never throws. */
  // A library is loaded by a path that is fixed or set by the operator.
  @SuppressWarnings("restricted")
  static NativeLibrary load(String path) {
    try {
      return new NativeLibrary(SymbolLookup.libraryLookup(path, Arena.global()), null);
    } catch (IllegalArgumentException | IllegalCallerException e) {
      return new NativeLibrary(null, "cannot load " + path + ": " + e.getMessage());
    }
  }

  static NativeLibrary unavailable(String reason) {
    return new NativeLibrary(null, reason);
  }

  /** Why nothing can be found in it; null if it is loaded. */
  public @Nullable String unavailableReason() {
    return unavailableReason;
  }

  /** The symbol's address, or {@link MemorySegment#NULL}. */
  MemorySegment find(String symbol) {
    return lookup == null ? MemorySegment.NULL : lookup.find(symbol).orElse(MemorySegment.NULL);
  }
}
