package dev.lily.metal.device;

import java.util.Optional;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests the chosen {@link MetalGpu}, the double with all that {@link MetalDoubleExtension}
 * checks. Skips the class, with the reason, where it cannot be had and was not asked for.
 */
public final class MetalGpuExtension
    implements ExecutionCondition,
        BeforeAllCallback,
        BeforeEachCallback,
        AfterEachCallback,
        ParameterResolver {

  private final MetalDoubleExtension metalDouble = new MetalDoubleExtension();

  private static boolean isDouble() {
    return MetalGpu.chosen() == MetalGpu.Kind.DOUBLE;
  }

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    if (context.getTestMethod().isPresent() || MetalGpu.isRequired()) {
      return ConditionEvaluationResult.enabled("decided for the class");
    }
    if (isDouble()) {
      return metalDouble.evaluateExecutionCondition(context);
    }
    Optional<String> missing = MetalGpu.missingDevice();
    return missing
        .map(ConditionEvaluationResult::disabled)
        .orElseGet(() -> ConditionEvaluationResult.enabled("this machine's GPU opens"));
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    if (isDouble()) {
      metalDouble.beforeAll(context);
    }
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    if (isDouble()) {
      metalDouble.beforeEach(context);
    }
    MetalGpu.get().useKernels();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    if (isDouble()) {
      metalDouble.afterEach(context);
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == MetalGpu.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return MetalGpu.get();
  }
}
