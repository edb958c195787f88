package dev.lily.engine.backend;

import java.util.Arrays;

/**
 * KV pages of one sequence in position order: token {@code p} lies in page {@code page(p /
 * pageTokens)} at row {@code p % pageTokens}. Written by the owner between passes, read by the back
 * end during one; not thread-safe.
 */
public final class PageTable {
  private int[] pages = new int[8];
  private int size;

  public int size() {
    return size;
  }

  public int page(int index) {
    return pages[index];
  }

  /** The backing array; entries at and beyond {@link #size} are meaningless. */
  public int[] array() {
    return pages;
  }

  public void add(int page) {
    if (size == pages.length) {
      pages = Arrays.copyOf(pages, 2 * size);
    }
    pages[size++] = page;
  }

  public void set(int index, int page) {
    pages[index] = page;
  }

  /** Forgets the entries from {@code size} on. */
  public void truncate(int size) {
    this.size = size;
  }
}
