package dev.lily.metal.msl;

import java.io.PrintWriter;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.junit.platform.engine.discovery.ClassSelector;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/**
 * Runs test classes, named as arguments, on a machine that has no build tool. Ends with status 1 if
 * a test fails or none runs.
 */
final class JUnitRun {
  private static final int MAX_FAILURES = 20;

  private JUnitRun() {}

  public static void main(String[] classes) {
    List<ClassSelector> selectors =
        Arrays.stream(classes).map(DiscoverySelectors::selectClass).toList();
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request().selectors(selectors).build();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request, listener);
    TestExecutionSummary summary = listener.getSummary();
    summary.printFailuresTo(new PrintWriter(System.out, true), MAX_FAILURES);
    System.out.printf(
        Locale.ROOT,
        "tests: %d run, %d failed, %d skipped, %.1f s%n",
        summary.getTestsStartedCount(),
        summary.getTotalFailureCount(),
        summary.getTestsSkippedCount() + summary.getTestsAbortedCount(),
        (summary.getTimeFinished() - summary.getTimeStarted()) / 1e3);
    boolean succeeded = summary.getTotalFailureCount() == 0 && summary.getTestsSucceededCount() > 0;
    System.exit(succeeded ? 0 : 1);
  }
}
