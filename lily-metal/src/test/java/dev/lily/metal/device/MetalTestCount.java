package dev.lily.metal.device;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/** Prints how many tests went through the double of Metal, or a real GPU, when all have run. */
public final class MetalTestCount implements TestExecutionListener {
  private final AtomicInteger contractCases = new AtomicInteger();
  private final AtomicInteger others = new AtomicInteger();
  private @Nullable TestPlan plan;

  @Override
  public void testPlanExecutionStarted(TestPlan started) {
    plan = started;
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    TestPlan running = plan;
    if (running == null
        || !test.isTest()
        || result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
      return;
    }
    boolean drivesMetal = false;
    boolean isContract = false;
    for (TestIdentifier at = test; at != null; at = running.getParent(at).orElse(null)) {
      TestSource source = at.getSource().orElse(null);
      if (source instanceof ClassSource classSource) {
        Class<?> type = classSource.getJavaClass();
        drivesMetal |= drivesMetal(type);
        isContract |= classes(type).anyMatch(c -> c.getSimpleName().equals("BackendContract"));
      }
    }
    if (drivesMetal) {
      (isContract ? contractCases : others).incrementAndGet();
    }
  }

  private static Stream<Class<?>> classes(Class<?> type) {
    return Stream.iterate(type, c -> c != null, Class::getSuperclass);
  }

  private static boolean drivesMetal(Class<?> type) {
    return classes(type)
        .flatMap(c -> Arrays.stream(c.getAnnotationsByType(ExtendWith.class)))
        .flatMap(extend -> Arrays.stream(extend.value()))
        .anyMatch(e -> e == MetalDoubleExtension.class || e == MetalGpuExtension.class);
  }

  @Override
  public void testPlanExecutionFinished(TestPlan finished) {
    if (contractCases.get() + others.get() > 0) {
      System.out.printf(
          "Through Metal (%s): %d contract cases and %d other tests passed%n",
          MetalGpu.chosen(), contractCases.get(), others.get());
    }
  }
}
