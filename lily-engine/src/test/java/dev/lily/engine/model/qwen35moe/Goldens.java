package dev.lily.engine.model.qwen35moe;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Reads recorded reference values from the test resources. */
public final class Goldens {
  private static final String ROOT = "/goldens/";

  private Goldens() {}

  public static JsonNode json(String name) {
    return JsonMapper.shared().readTree(bytes(name));
  }

  /** All fp32 tensors of a safetensors file, flattened, by name. */
  public static Map<String, float[]> tensors(String name) {
    ByteBuffer file = ByteBuffer.wrap(bytes(name)).order(ByteOrder.LITTLE_ENDIAN);
    int headerBytes = (int) file.getLong(0);
    byte[] header = new byte[headerBytes];
    file.get(8, header);
    Map<String, float[]> tensors = new HashMap<>();
    JsonMapper.shared()
        .readTree(header)
        .forEachEntry(
            (tensor, entry) -> {
              if (!tensor.equals("__metadata__")) {
                int begin = entry.path("data_offsets").path(0).asInt();
                int end = entry.path("data_offsets").path(1).asInt();
                float[] values = new float[(end - begin) / 4];
                file.slice(8 + headerBytes + begin, end - begin)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .asFloatBuffer()
                    .get(values);
                tensors.put(tensor, values);
              }
            });
    return tensors;
  }

  public static int[] ints(JsonNode array) {
    int[] values = new int[array.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = array.get(i).asInt();
    }
    return values;
  }

  private static byte[] bytes(String name) {
    try (InputStream in =
        Objects.requireNonNull(Goldens.class.getResourceAsStream(ROOT + name), name)) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
