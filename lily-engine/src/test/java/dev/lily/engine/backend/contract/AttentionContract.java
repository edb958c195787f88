package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Gated attention: head norms, rotation, the pages, causality, the output gate. */
abstract class AttentionContract {
  private static final float EPS = 1e-6f;

  private final BackendContract contract;

  AttentionContract(BackendContract contract) {
    this.contract = contract;
  }

  /** One layer over random rows, run in pieces. */
  private final class Layer implements AutoCloseable {
    private final Oracle.Attention oracle;
    private final Rig rig;
    private final AttentionOperands operands;
    private final float[] queryAndGate;
    private final float[] key;
    private final float[] value;
    private final KeyValueType type;
    private final int pageTokens;

    Layer(Oracle.Attention oracle, KeyValueType type, int pageTokens, int numRows, double inputs) {
      this.oracle = oracle;
      this.type = type;
      this.pageTokens = pageTokens;
      Values random = new Values(oracle.headDim() * 1000L + numRows);
      int queries = oracle.heads() * oracle.headDim();
      int keys = oracle.keyValueHeads() * oracle.headDim();
      queryAndGate = random.uniform(numRows * 2 * queries, -inputs, inputs);
      key = random.uniform(numRows * keys, -inputs, inputs);
      value = random.uniform(numRows * keys, -1, 1);
      int pages = 3 * (numRows / pageTokens + 1) + 3;
      StateLayout layout =
          new StateLayout(
              2,
              oracle.keyValueHeads(),
              oracle.headDim(),
              type,
              pageTokens,
              pages,
              0,
              4,
              64,
              2,
              16,
              16,
              8,
              0,
              100);
      ModelShape shape =
          new ModelShape(64, oracle.heads(), oracle.headDim(), 64, 8, 2, 32, 32, 100);
      rig = new Rig(contract.open(), layout, shape);
      operands =
          new AttentionOperands(
              1,
              oracle.heads(),
              oracle.keyValueHeads(),
              oracle.headDim(),
              oracle.rotaryDim(),
              oracle.ropeTheta(),
              rig.tensor(2 * queries),
              rig.tensor(keys),
              rig.tensor(keys),
              rig.backend().constant(oracle.queryGain()),
              rig.backend().constant(oracle.keyGain()),
              EPS,
              rig.tensor(queries),
              rig.tensor(queries),
              rig.tensor(queries));
    }

    int width() {
      return oracle.heads() * oracle.headDim();
    }

    /** Every third page from {@code first} on, backwards: a table is not a range. */
    PageTable pages(int first, int tokens) {
      PageTable table = new PageTable();
      int count = (tokens + pageTokens - 1) / pageTokens;
      for (int i = count - 1; i >= 0; i--) {
        table.add(3 * i + first);
      }
      return table;
    }

    float[] run(PageTable pages, int from, int to) {
      float[] y = new float[(to - from) * width()];
      for (int at = from; at < to; at += Rig.LIMITS.maxRows()) {
        int end = Math.min(to, at + Rig.LIMITS.maxRows());
        rig.plan().clear();
        add(pages, at, at, end);
        System.arraycopy(read(at), 0, y, (at - from) * width(), (end - at) * width());
      }
      return y;
    }

    /** Adds input rows to the plan; {@code base} is the input row that has token 0. */
    void add(PageTable pages, int base, int from, int to) {
      int[] tokens = new int[to - from];
      Arrays.setAll(tokens, i -> from - base + i);
      rig.plan().add(tokens, 0, to - from, from, pages, 0, 0, RowPlan.NO_SAMPLING);
    }

    float[] read(int base) {
      return rig.read(
          operands.y(),
          rig.plan().numRows(),
          pass -> {
            rig.fill(pass, from(queryAndGate, base, 2 * width()), operands.queryAndGate());
            int keys = oracle.keyValueHeads() * oracle.headDim();
            rig.fill(pass, from(key, base, keys), operands.key());
            rig.fill(pass, from(value, base, keys), operands.value());
            pass.prepareAttention(operands);
            pass.attend(operands);
          });
    }

    private float[] from(float[] values, int row, int columns) {
      int end = Math.min(values.length, (row + Rig.LIMITS.maxRows()) * columns);
      return Arrays.copyOfRange(values, row * columns, end);
    }

    double[] expected() {
      return oracle.run(
          rows(queryAndGate, 2 * width()), rows(key, keyWidth()), rows(value, keyWidth()));
    }

    /**
     * @param bounds receives how far keeping keys and values as a type may move each result
     */
    double[] expected(double[] bounds) {
      return oracle.run(
          rows(queryAndGate, 2 * width()),
          rows(key, keyWidth()),
          rows(value, keyWidth()),
          type,
          bounds);
    }

    private int keyWidth() {
      return oracle.keyValueHeads() * oracle.headDim();
    }

    @Override
    public void close() {
      rig.close();
    }
  }

  private static List<double[]> rows(float[] values, int columns) {
    List<double[]> rows = new ArrayList<>();
    for (int i = 0; i < values.length; i += columns) {
      rows.add(Close.doubles(values, i, columns));
    }
    return rows;
  }

  private Layer layer(
      int heads, int keyValueHeads, int headDim, int rotaryDim, int pageTokens, int numRows) {
    return layer(
        contract.keyValueType(), heads, keyValueHeads, headDim, rotaryDim, pageTokens, numRows, 2);
  }

  private Layer layer(
      KeyValueType type,
      int heads,
      int keyValueHeads,
      int headDim,
      int rotaryDim,
      int pageTokens,
      int numRows,
      double gains) {
    Values random = new Values(heads);
    return new Layer(
        new Oracle.Attention(
            heads,
            keyValueHeads,
            headDim,
            rotaryDim,
            10_000,
            random.uniform(headDim, 0, gains),
            random.uniform(headDim, 0, gains),
            EPS),
        type,
        pageTokens,
        numRows,
        2);
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, 2, 2, 1, 9",
    "2, 1, 13, 4, 4, 30",
    "4, 2, 32, 8, 16, 64",
    "6, 2, 20, 10, 5, 64",
    "8, 1, 64, 16, 32, 100",
    "16, 2, 256, 64, 32, 50",
    "3, 3, 48, 48, 7, 40",
  })
  void attendsInEveryShape(
      int heads, int keyValueHeads, int headDim, int rotaryDim, int pageTokens, int numRows) {
    try (Layer layer = layer(heads, keyValueHeads, headDim, rotaryDim, pageTokens, numRows)) {
      Close.all(
          layer.run(layer.pages(0, numRows), 0, numRows),
          layer.expected(),
          64 * contract.epsilon());
    }
  }

  @Test
  void attendsOverALongContext() {
    try (Layer layer = layer(4, 2, 16, 8, 16, 1500)) {
      Close.all(
          layer.run(layer.pages(0, 1500), 0, 1500), layer.expected(), 128 * contract.epsilon());
    }
  }

  @Test
  void survivesScoresThatWouldOverflowTheExponential() {
    try (Layer layer = layer(contract.keyValueType(), 2, 1, 32, 8, 16, 60, 30)) {
      Close.all(layer.run(layer.pages(0, 60), 0, 60), layer.expected(), 2048 * contract.epsilon());
    }
  }

  /** What the back end can keep keys and values as; a type that it cannot is no test. */
  private void forEachType(Consumer<KeyValueType> test) {
    Set<KeyValueType> types;
    try (Backend backend = contract.open()) {
      types = backend.keyValueTypes();
    }
    assertThat(types).contains(contract.keyValueType());
    types.forEach(test);
  }

  /** Keys and values are off by half a step of their type at most. */
  @Test
  void staysWithinTheRoundingOfEveryType() {
    forEachType(
        type -> {
          try (Layer layer = layer(type, 8, 2, 64, 16, 32, 100, 1)) {
            double[] bounds = new double[100 * layer.width()];
            double[] expected = layer.expected(bounds);
            double largest = Arrays.stream(expected).map(Math::abs).max().orElseThrow();
            for (int i = 0; i < bounds.length; i++) {
              bounds[i] += 64 * contract.epsilon() * largest;
            }
            Close.each(layer.run(layer.pages(0, 100), 0, 100), expected, bounds, 1);
          }
        });
  }

  @Test
  void givesTheSameBitsWhereverTheRowsAreCut() {
    forEachType(this::givesTheSameBitsWhereverTheRowsAreCut);
  }

  private void givesTheSameBitsWhereverTheRowsAreCut(KeyValueType type) {
    try (Layer layer = layer(type, 4, 2, 32, 8, 16, 50, 2)) {
      float[] whole = layer.run(layer.pages(0, 50), 0, 50);
      for (int cut = 1; cut < 50; cut++) {
        PageTable pages = layer.pages(1, 50);
        assertThat(layer.run(pages, 0, cut))
            .containsExactly(Arrays.copyOf(whole, cut * layer.width()));
        assertThat(layer.run(pages, cut, 50))
            .containsExactly(Arrays.copyOfRange(whole, cut * layer.width(), whole.length));
      }
    }
  }

  @Test
  void givesADecodedRowOfALongContextTheBitsOfThePrefilledOne() {
    forEachType(this::givesADecodedRowOfALongContextTheBitsOfThePrefilledOne);
  }

  private void givesADecodedRowOfALongContextTheBitsOfThePrefilledOne(KeyValueType type) {
    try (Layer layer = layer(type, 4, 2, 16, 8, 16, 1300, 2)) {
      float[] whole = layer.run(layer.pages(0, 1300), 0, 1300);
      PageTable pages = layer.pages(1, 1300);
      layer.run(pages, 0, 1250);
      for (int row = 1250; row < 1300; row += 3) {
        int end = Math.min(1300, row + 3);
        assertThat(layer.run(pages, row, end))
            .containsExactly(Arrays.copyOfRange(whole, row * layer.width(), end * layer.width()));
      }
    }
  }

  @Test
  void keepsTheSequencesOfAPlanApart() {
    forEachType(this::keepsTheSequencesOfAPlanApart);
  }

  private void keepsTheSequencesOfAPlanApart(KeyValueType type) {
    try (Layer layer = layer(type, 4, 2, 32, 8, 16, 60, 2)) {
      float[] alone = layer.run(layer.pages(0, 60), 0, 60);
      PageTable first = layer.pages(1, 60);
      PageTable second = layer.pages(2, 60);
      layer.run(first, 0, 40);
      layer.run(second, 0, 30);
      layer.rig.plan().clear();
      layer.add(second, 30, 30, 33);
      layer.add(first, 30, 40, 60);
      float[] together = layer.read(30);
      assertThat(Arrays.copyOf(together, 3 * layer.width()))
          .containsExactly(Arrays.copyOfRange(alone, 30 * layer.width(), 33 * layer.width()));
      assertThat(Arrays.copyOfRange(together, 3 * layer.width(), together.length))
          .containsExactly(Arrays.copyOfRange(alone, 40 * layer.width(), 60 * layer.width()));
    }
  }

  @Test
  void refusesASequenceThatOutgrowsItsPages() {
    try (Layer layer = layer(4, 2, 32, 8, 16, 40)) {
      PageTable pages = layer.pages(0, 32);
      layer.run(pages, 0, 32);
      assertThatThrownBy(() -> layer.run(pages, 32, 33))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("33");
    }
  }

  @Test
  void continuesFromACopiedPage() {
    forEachType(this::continuesFromACopiedPage);
  }

  private void continuesFromACopiedPage(KeyValueType type) {
    try (Layer layer = layer(type, 4, 2, 32, 8, 16, 40, 2)) {
      PageTable pages = layer.pages(0, 40);
      layer.run(pages, 0, 21);
      PageTable fork = new PageTable();
      fork.add(pages.page(0));
      fork.add(1);
      fork.add(4);
      layer.rig.state().copyPage(pages.page(1), 1);
      float[] left = layer.run(pages, 21, 40);
      assertThat(layer.run(fork, 21, 40)).containsExactly(left);
    }
  }
}
