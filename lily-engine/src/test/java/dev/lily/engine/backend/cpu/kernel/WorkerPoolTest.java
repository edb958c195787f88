package dev.lily.engine.backend.cpu.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.BackendException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WorkerPoolTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 8})
  void runsEveryPartOnceInEveryDispatch(int threads) {
    try (WorkerPool pool = new WorkerPool(threads)) {
      assertThat(pool.numWorkers()).isEqualTo(threads);
      AtomicIntegerArray runs = new AtomicIntegerArray(40);
      int[] expected = new int[40];
      WorkerPool.Task task = (part, worker) -> runs.incrementAndGet(part);
      for (int dispatch = 0; dispatch < 20_000; dispatch++) {
        int parts = dispatch % 41;
        pool.run(task, parts);
        for (int part = 0; part < parts; part++) {
          expected[part]++;
        }
      }
      for (int part = 0; part < 40; part++) {
        assertThat(runs.get(part)).isEqualTo(expected[part]);
      }
    }
  }

  @Test
  void showsTheCallerWhatTheWorkersWrote() {
    try (WorkerPool pool = new WorkerPool(4)) {
      long[] values = new long[64];
      WorkerPool.Task task = (part, worker) -> values[part] += part;
      for (int dispatch = 1; dispatch <= 1_000; dispatch++) {
        pool.run(task, values.length);
        assertThat(values[63]).isEqualTo(63L * dispatch);
        assertThat(values[1]).isEqualTo(dispatch);
      }
    }
  }

  @Test
  void givesEachThreadItsOwnNumber() {
    try (WorkerPool pool = new WorkerPool(3)) {
      Thread[] threads = new Thread[3];
      Set<String> clashes = ConcurrentHashMap.newKeySet();
      WorkerPool.Task task =
          (part, worker) -> {
            Thread before = threads[worker];
            threads[worker] = Thread.currentThread();
            if (before != null && before != Thread.currentThread()) {
              clashes.add(before + " and " + Thread.currentThread());
            }
          };
      for (int dispatch = 0; dispatch < 1_000; dispatch++) {
        pool.run(task, 30);
      }
      assertThat(clashes).isEmpty();
      assertThat(threads[0]).isSameAs(Thread.currentThread());
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void reportsAFailedPartAndStaysUsable(int threads) {
    try (WorkerPool pool = new WorkerPool(threads)) {
      AtomicIntegerArray runs = new AtomicIntegerArray(20);
      ArithmeticException cause = new ArithmeticException("part 13");
      WorkerPool.Task failing =
          (part, worker) -> {
            runs.incrementAndGet(part);
            if (part == 13) {
              throw cause;
            }
          };
      assertThatThrownBy(() -> pool.run(failing, 20))
          .isInstanceOf(BackendException.class)
          .hasCause(cause);
      for (int part = 0; part < 20; part++) {
        assertThat(runs.get(part)).isEqualTo(1);
      }
      pool.run((part, worker) -> runs.incrementAndGet(part), 20);
      assertThat(runs.get(13)).isEqualTo(2);
    }
  }

  @Test
  void passesABackendExceptionOnAsItIs() {
    try (WorkerPool pool = new WorkerPool(2)) {
      BackendException thrown = new BackendException("Token 9 is outside the embedding");
      assertThatThrownBy(
              () ->
                  pool.run(
                      (part, worker) -> {
                        throw thrown;
                      },
                      3))
          .isSameAs(thrown);
    }
  }

  @Test
  void endsItsThreadsWhenClosed() throws InterruptedException {
    Thread[] threads = new Thread[3];
    try (WorkerPool pool = new WorkerPool(3)) {
      // A part that waits for the others brings every thread in.
      CountDownLatch all = new CountDownLatch(3);
      pool.run(
          (part, worker) -> {
            threads[worker] = Thread.currentThread();
            all.countDown();
            try {
              all.await();
            } catch (InterruptedException e) {
              throw new IllegalStateException(e);
            }
          },
          3);
    }
    for (int worker = 1; worker < 3; worker++) {
      assertThat(threads[worker].getName()).isEqualTo("lily-cpu-" + worker);
      assertThat(threads[worker].isDaemon()).isTrue();
      threads[worker].join();
    }
  }
}
