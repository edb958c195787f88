package dev.lily.engine.constraint;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Bounds and multiples against arithmetic. */
class NumberPropertyTest {
  @Property(tries = 300)
  void acceptsExactlyTheNumbersWithinTheBounds(@ForAll long seed) {
    Random random = new Random(seed);
    BigDecimal low = decimal(random);
    BigDecimal high = low.add(decimal(random).abs()).add(new BigDecimal("0.5"));
    boolean exclusive = random.nextBoolean();
    BigDecimal step = random.nextBoolean() ? null : new BigDecimal("0.05");
    Grammar grammar =
        Texts.schema(
            "{'type':'number','%s':%s,'%s':%s%s}"
                .formatted(
                    exclusive ? "exclusiveMinimum" : "minimum",
                    low.toPlainString(),
                    exclusive ? "exclusiveMaximum" : "maximum",
                    high.toPlainString(),
                    step == null ? "" : ",'multipleOf':" + step));
    for (int i = 0; i < 60; i++) {
      BigDecimal number =
          switch (random.nextInt(4)) {
            case 0 -> low.add(new BigDecimal(random.nextInt(3) - 1).movePointLeft(2));
            case 1 -> high.add(new BigDecimal(random.nextInt(3) - 1).movePointLeft(1));
            case 2 -> low.add(high).divide(BigDecimal.TWO);
            default -> decimal(random);
          };
      int order = exclusive ? 1 : 0;
      boolean within = number.compareTo(low) >= order && high.compareTo(number) >= order;
      boolean multiple = step == null || number.remainder(step).signum() == 0;
      BigDecimal written = step == null ? number : number.stripTrailingZeros();
      assertThat(Texts.accepts(grammar, written.toPlainString()))
          .as("%s from %s to %s", number, low, high)
          .isEqualTo(within && multiple);
    }
  }

  private static BigDecimal decimal(Random random) {
    int digits = random.nextInt(5);
    int scale = random.nextInt(4);
    long bound = (long) Math.pow(10, digits);
    return BigDecimal.valueOf(random.nextLong(2 * bound + 1) - bound, Math.min(scale, digits));
  }
}
