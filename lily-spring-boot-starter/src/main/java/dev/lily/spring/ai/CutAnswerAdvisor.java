package dev.lily.spring.ai;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.client.ChatClientAttributes;
import org.springframework.ai.chat.client.ChatClientRequest;
import org.springframework.ai.chat.client.ChatClientResponse;
import org.springframework.ai.chat.client.advisor.api.CallAdvisor;
import org.springframework.ai.chat.client.advisor.api.CallAdvisorChain;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.core.Ordered;

/**
 * Fails a {@code ChatClient}'s {@code entity(…)} and {@code responseEntity(…)} with a {@link
 * CutAnswerException} where the token limit cut the answer off. Without it, the converter fails at
 * the place where the JSON breaks off, or returns null where the limit came before the answer. Does
 * nothing to answers that are not converted.
 *
 * <p>In the auto-configured {@code ChatClient.Builder}; others take it by {@code defaultAdvisors}.
 */
public final class CutAnswerAdvisor implements CallAdvisor {

  private static final String LENGTH = "length";

  @Override
  public ChatClientResponse adviseCall(ChatClientRequest request, CallAdvisorChain chain) {
    ChatClientResponse response = chain.nextCall(request);
    if (isConverted(request.context())) {
      check(response.chatResponse());
    }
    return response;
  }

  private static boolean isConverted(Map<String, @Nullable Object> context) {
    return context.containsKey(ChatClientAttributes.OUTPUT_FORMAT.getKey())
        || context.containsKey(ChatClientAttributes.STRUCTURED_OUTPUT_SCHEMA.getKey());
  }

  private static void check(@Nullable ChatResponse response) {
    Generation generation = response == null ? null : response.getResult();
    if (response == null || generation == null || response.hasToolCalls()) {
      return;
    }
    String finishReason = generation.getMetadata().getFinishReason();
    if (LENGTH.equalsIgnoreCase(finishReason)) {
      throw new CutAnswerException(LENGTH, response.getMetadata().getUsage().getCompletionTokens());
    }
  }

  @Override
  public String getName() {
    return getClass().getSimpleName();
  }

  /** Next to the model, so that it sees each answer before others do. */
  @Override
  public int getOrder() {
    return Ordered.LOWEST_PRECEDENCE - 1;
  }
}
