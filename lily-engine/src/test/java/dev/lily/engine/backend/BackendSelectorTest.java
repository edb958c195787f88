package dev.lily.engine.backend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class BackendSelectorTest {
  private static final BackendProvider CPU =
      provider("cpu", 0, new Availability.Available("some processor"));
  private static final BackendProvider NO_GPU =
      provider("gpu", 10, new Availability.Unavailable("no such device", "Buy one"));
  private static final BackendProvider GPU =
      provider("gpu", 10, new Availability.Available("some device"));

  @Test
  void picksTheAvailableOneOfHighestPriority() {
    assertThat(BackendSelector.select("auto", List.of(CPU, GPU)).provider()).isSameAs(GPU);
  }

  @Test
  void saysWhyAPreferredOneWasPassedOver() {
    BackendSelector.Selection selection = BackendSelector.select("auto", List.of(NO_GPU, CPU));
    assertThat(selection.provider()).isSameAs(CPU);
    assertThat(selection.reason()).isEqualTo("cpu (some processor); not gpu: no such device");
  }

  @Test
  void takesTheNamedOneEvenIfAnotherIsPreferred() {
    assertThat(BackendSelector.select("cpu", List.of(GPU, CPU)).provider()).isSameAs(CPU);
  }

  @Test
  void refusesANamedOneThatIsUnavailableWithReasonAndRemedy() {
    assertThatThrownBy(() -> BackendSelector.select("gpu", List.of(NO_GPU, CPU)))
        .isInstanceOf(BackendException.class)
        .hasMessage("Back end 'gpu' is not available: no such device. Buy one");
  }

  @Test
  void namesTheKnownOnesWhenAskedForAnUnknownOne() {
    assertThatThrownBy(() -> BackendSelector.select("npu", List.of(NO_GPU, CPU)))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("'npu' is unknown")
        .hasMessageContaining("[gpu, cpu]");
  }

  @Test
  void givesTheNextOneAndWhyTheFirstDidNotDo() {
    BackendSelector.Selection selection = BackendSelector.select("auto", List.of(CPU, GPU));
    assertThat(selection.next("it broke"))
        .hasValueSatisfying(
            next -> {
              assertThat(next.provider()).isSameAs(CPU);
              assertThat(next.reason()).isEqualTo("cpu (some processor); not gpu: it broke");
              assertThat(next.next("it broke, too")).isEmpty();
            });
  }

  @Test
  void givesNoOtherThanTheNamedOne() {
    assertThat(BackendSelector.select("gpu", List.of(CPU, GPU)).next("it broke")).isEmpty();
  }

  @Test
  void refusesWhenNothingIsAvailable() {
    assertThatThrownBy(() -> BackendSelector.select("auto", List.of(NO_GPU)))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("not gpu: no such device");
  }

  private static BackendProvider provider(String id, int priority, Availability availability) {
    return new BackendProvider() {
      @Override
      public String id() {
        return id;
      }

      @Override
      public int priority() {
        return priority;
      }

      @Override
      public Availability availability() {
        return availability;
      }

      @Override
      public Backend open(BackendOptions options) {
        throw new AssertionError("selection must not open a device");
      }
    };
  }
}
