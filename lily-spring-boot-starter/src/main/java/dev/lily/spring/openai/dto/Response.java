package dev.lily.spring.openai.dto;

import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * The answer of the operation {@code responses}. Much of it repeats the request.
 *
 * @param object always {@code response}
 * @param createdAt seconds since the epoch
 * @param status {@code in_progress}, {@code completed}, {@code incomplete} or {@code failed}
 * @param background always false
 * @param error why it failed
 * @param incompleteDetails why it is incomplete
 * @param previousResponseId always {@code null}: nothing is stored
 * @param store always false
 * @param truncation always {@code disabled}
 * @param usage {@code null} until the end
 */
public record Response(
    String id,
    String object,
    long createdAt,
    String status,
    boolean background,
    @Nullable Failure error,
    @Nullable IncompleteDetails incompleteDetails,
    @Nullable String instructions,
    @Nullable Integer maxOutputTokens,
    String model,
    List<ResponseItem> output,
    boolean parallelToolCalls,
    @Nullable String previousResponseId,
    Reasoning reasoning,
    boolean store,
    @Nullable Double temperature,
    Text text,
    JsonNode toolChoice,
    JsonNode tools,
    @Nullable Double topP,
    String truncation,
    @Nullable ResponseUsage usage,
    JsonNode metadata) {

  public static final String OBJECT = "response";

  public record Failure(String code, String message) {}

  public record IncompleteDetails(String reason) {}

  public record Reasoning(@Nullable String effort, @Nullable String summary) {}

  public record Text(JsonNode format) {}
}
