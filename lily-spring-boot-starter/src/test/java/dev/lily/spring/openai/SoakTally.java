package dev.lily.spring.openai;

import dev.lily.spring.openai.SoakRequests.Kind;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** What became of a soak's requests. Thread-safe. */
final class SoakTally {

  /** A request that was answered and whose answer can be repeated; the choices as JSON. */
  record Answered(Kind kind, String body, String choices) {}

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Map<Kind, List<Long>> nanos = new EnumMap<>(Kind.class);
  private final List<Long> firstTokens = new ArrayList<>();
  private final List<Answered> answered = new ArrayList<>();
  private final List<String> problems = new ArrayList<>();
  private long ends;
  private int refused;

  /** Counts a request that ended as it should. */
  void ended(Kind kind, long took) {
    lock.lock();
    try {
      nanos.computeIfAbsent(kind, _ -> new ArrayList<>()).add(took);
      ends++;
      changed.signal();
    } finally {
      lock.unlock();
    }
  }

  void firstToken(long took) {
    lock.lock();
    try {
      firstTokens.add(took);
    } finally {
      lock.unlock();
    }
  }

  void answered(Answered answer) {
    lock.lock();
    try {
      answered.add(answer);
    } finally {
      lock.unlock();
    }
  }

  /** Notes what should not have happened; the soak goes on. */
  void problem(String what) {
    lock.lock();
    try {
      problems.add(what);
      ends++;
      changed.signal();
    } finally {
      lock.unlock();
    }
  }

  long ends() {
    lock.lock();
    try {
      return ends;
    } finally {
      lock.unlock();
    }
  }

  /** Counts a request that found the queue full; waits a while for another one to have ended. */
  void refused(long endsBefore) throws InterruptedException {
    lock.lock();
    try {
      refused++;
      long left = TimeUnit.SECONDS.toNanos(1);
      while (ends == endsBefore && left > 0) {
        left = changed.awaitNanos(left);
      }
    } finally {
      lock.unlock();
    }
  }

  List<Answered> answered() {
    lock.lock();
    try {
      return List.copyOf(answered);
    } finally {
      lock.unlock();
    }
  }

  List<String> problems() {
    lock.lock();
    try {
      return List.copyOf(problems);
    } finally {
      lock.unlock();
    }
  }

  int count(Kind kind) {
    lock.lock();
    try {
      return nanos.getOrDefault(kind, List.of()).size();
    } finally {
      lock.unlock();
    }
  }

  /** A line a kind: how many ended and the milliseconds they took. */
  String table() {
    lock.lock();
    try {
      StringBuilder table =
          new StringBuilder("%-15s %8s %9s %9s%n".formatted("", "ended", "p50 ms", "p99 ms"));
      nanos.forEach(
          (kind, took) ->
              table.append(
                  "%-15s %8d %9d %9d%n"
                      .formatted(
                          kind.name().toLowerCase(Locale.ROOT).replace('_', ' '),
                          took.size(),
                          millis(took, 0.5),
                          millis(took, 0.99))));
      return table.append("%-15s %8d%n".formatted("refused first", refused)).toString();
    } finally {
      lock.unlock();
    }
  }

  /** Milliseconds to the first token of a stream within which this share of them began. */
  long millisToFirstToken(double share) {
    lock.lock();
    try {
      return millis(firstTokens, share);
    } finally {
      lock.unlock();
    }
  }

  private static long millis(List<Long> nanos, double share) {
    if (nanos.isEmpty()) {
      return 0;
    }
    List<Long> sorted = nanos.stream().sorted().toList();
    int index = (int) Math.ceil(share * sorted.size()) - 1;
    return TimeUnit.NANOSECONDS.toMillis(sorted.get(Math.max(0, index)));
  }
}
