package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests the double of Metal, fresh each time. After a test no violation may be left that it
 * has not taken, no object alive, no autorelease pool open. Skips the class where the double can't
 * be built.
 */
public final class MetalDoubleExtension
    implements ExecutionCondition,
        BeforeAllCallback,
        BeforeEachCallback,
        AfterEachCallback,
        ParameterResolver {

  private long liveBefore;
  private long allocatedBefore;

  /** A condition, unlike an aborted set-up of a class, counts as a skip in the build's summary. */
  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    if (context.getTestMethod().isPresent() || NativeTools.isRequired()) {
      return ConditionEvaluationResult.enabled("decided for the class");
    }
    return NativeTools.missingTool()
        .map(ConditionEvaluationResult::disabled)
        .orElseGet(() -> ConditionEvaluationResult.enabled("the double can be built"));
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    MetalDouble.install();
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    MetalDouble metal = MetalDouble.install();
    metal.reset();
    metal.useStubKernels();
    liveBefore = metal.get("live");
    allocatedBefore = metal.get("allocated");
  }

  @Override
  public void afterEach(ExtensionContext context) {
    MetalDouble metal = MetalDouble.install();
    if (context.getExecutionException().isEmpty()) {
      assertThat(metal.takeViolations()).as("violations").isEmpty();
      assertThat(metal.get("live")).as("live objects").isEqualTo(liveBefore);
      assertThat(metal.get("allocated")).as("bytes of buffers").isEqualTo(allocatedBefore);
      assertThat(metal.get("pools")).as("open autorelease pools").isZero();
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == MetalDouble.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return MetalDouble.install();
  }
}
