package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.KeyValueType;
import org.junit.jupiter.api.Nested;

/** The whole contract. A back end's test extends this and opens the back end. */
public abstract class BackendContract {
  /** Opens the back end under test; every test opens and closes its own. */
  protected abstract Backend open();

  /** What keys and values are kept as where results are compared with exact ones. */
  protected KeyValueType keyValueType() {
    return KeyValueType.BF16;
  }

  /**
   * Rounding of activations, as the distance from 1 to the next value: the default is that of fp32,
   * a back end with bf16 activations says 2^-7. Tolerances are multiples of it.
   */
  protected double epsilon() {
    return 0x1p-23;
  }

  /**
   * Whether a row whose token never left the device gives the bits of one whose token is in the
   * plan. A back end with a decode path of its own says no, and bounds the difference in its own
   * tests.
   */
  protected boolean decodesToTheBitsOfPrefill() {
    return true;
  }

  @Nested
  class Products extends ProductContract {
    Products() {
      super(BackendContract.this);
    }
  }

  @Nested
  class Rows extends RowContract {
    Rows() {
      super(BackendContract.this);
    }
  }

  @Nested
  class GatedDelta extends GatedDeltaContract {
    GatedDelta() {
      super(BackendContract.this);
    }
  }

  @Nested
  class Attention extends AttentionContract {
    Attention() {
      super(BackendContract.this);
    }
  }

  @Nested
  class Experts extends ExpertsContract {
    Experts() {
      super(BackendContract.this);
    }
  }

  @Nested
  class Sampling extends SamplingContract {
    Sampling() {
      super(BackendContract.this);
    }
  }

  @Nested
  class WholePass extends PassContract {
    WholePass() {
      super(BackendContract.this);
    }
  }
}
