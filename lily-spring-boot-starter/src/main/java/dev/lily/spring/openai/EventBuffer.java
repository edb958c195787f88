package dev.lily.spring.openai;

import java.util.AbstractQueue;
import java.util.Iterator;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The queue between engine and client. It counts what waits in it, and says when it is full and
 * when it has room again; it never refuses an element, because a pass in flight cannot be called
 * back. Thread-safe.
 */
final class EventBuffer<E> extends AbstractQueue<E> {
  private final ConcurrentLinkedQueue<E> queue = new ConcurrentLinkedQueue<>();
  private final AtomicInteger size = new AtomicInteger();
  private final int capacity;
  private final Runnable onRoom;

  /**
   * @param capacity elements with which it is full
   * @param onRoom called when it was full and is no longer, on the thread that took an element
   */
  EventBuffer(int capacity, Runnable onRoom) {
    this.capacity = capacity;
    this.onRoom = onRoom;
  }

  boolean isFull() {
    return size.get() >= capacity;
  }

  @Override
  public boolean offer(E element) {
    size.incrementAndGet();
    return queue.offer(element);
  }

  @Override
  public @Nullable E poll() {
    E element = queue.poll();
    if (element != null && size.getAndDecrement() == capacity) {
      onRoom.run();
    }
    return element;
  }

  @Override
  public @Nullable E peek() {
    return queue.peek();
  }

  @Override
  public Iterator<E> iterator() {
    return queue.iterator();
  }

  @Override
  public int size() {
    return size.get();
  }
}
