package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.sampling.SamplingOptions;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * Maps the body of a text completion to requests of the engine, by the rules of {@link
 * CompletionRequestMapper}. Immutable and thread-safe.
 */
final class TextCompletionRequestMapper {
  static final String PROMPT = "prompt";

  /** As the API has it. */
  private static final int DEFAULT_MAX_TOKENS = 16;

  private static final int MAX_LOGPROBS = 5;

  private final CommonFields common;
  private final ServedModel model;

  TextCompletionRequestMapper(ServedModel model, OpenAiOptions options) {
    this.model = model;
    common = new CommonFields(model.name(), options);
  }

  TextCompletionRequest map(FieldReader fields) {
    common.checkModel(fields);
    if (fields.has("suffix")) {
      throw ApiError.unsupported(
              "suffix", "suffix is not supported: this model writes only what follows a prompt.")
          .exception();
    }
    int topLogprobs = topLogprobs(fields);
    boolean echo = fields.isTrue("echo");
    if (echo && topLogprobs >= 0) {
      throw ApiError.unsupported(
              "echo", "echo is not supported together with logprobs; leave one of them out.")
          .exception();
    }
    int n = common.choices(fields);
    checkBestOf(fields, n);
    List<RawPrompt> prompts = prompts(fields);
    if ((long) prompts.size() * n > common.maxChoices()) {
      throw ApiError.invalidValue(
              PROMPT,
              "%d prompts with %d choices each are more than the %d choices that a request may have."
                  .formatted(prompts.size(), n, common.maxChoices()))
          .exception();
    }
    return new TextCompletionRequest(
        choices(fields, prompts, n, topLogprobs),
        n,
        prompts.stream().map(prompt -> echo ? text(prompt) : "").toList(),
        topLogprobs,
        fields.isTrue("stream"),
        fields.object("stream_options").isTrue("include_usage"));
  }

  private List<GenerationRequest> choices(
      FieldReader fields, List<RawPrompt> prompts, int n, int topLogprobs) {
    SamplingOptions sampling = CommonFields.sampling(fields);
    Integer asked = CommonFields.atLeastOne(fields, "max_tokens");
    int maxTokens = asked == null ? DEFAULT_MAX_TOKENS : asked;
    List<GenerationRequest> choices = new ArrayList<>(prompts.size() * n);
    for (RawPrompt prompt : prompts) {
      GenerationRequest.Builder builder =
          GenerationRequest.builder(prompt)
              .thinking(false)
              .maxTokens(maxTokens)
              .minTokens(common.minTokens(fields, maxTokens))
              .stopStrings(common.stopStrings(fields))
              .topLogprobs(topLogprobs < 0 ? null : topLogprobs)
              .timeout(common.defaults().timeout());
      for (int i = 0; i < n; i++) {
        choices.add(builder.sampling(common.seeded(sampling, i)).build());
      }
    }
    return choices;
  }

  private static int topLogprobs(FieldReader fields) {
    Integer asked = fields.integer("logprobs");
    if (asked == null) {
      return -1;
    }
    if (asked < 0 || asked > MAX_LOGPROBS) {
      throw ApiError.invalidValue(
              "logprobs", "logprobs is %d; it must be from 0 to %d.".formatted(asked, MAX_LOGPROBS))
          .exception();
    }
    return asked;
  }

  private static void checkBestOf(FieldReader fields, int n) {
    Integer bestOf = fields.integer("best_of");
    if (bestOf != null && bestOf != n) {
      throw ApiError.unsupported(
              "best_of", "best_of is %d; it can only be n, which is %d.".formatted(bestOf, n))
          .exception();
    }
  }

  private static List<RawPrompt> prompts(FieldReader fields) {
    JsonNode prompt = fields.node(PROMPT);
    if (prompt == null) {
      throw ApiError.invalidValue(PROMPT, "prompt is missing; send the text to continue.")
          .exception();
    }
    if (prompt.isString()) {
      return List.of(text(PROMPT, prompt.stringValue()));
    }
    if (!prompt.isArray()) {
      throw fields.wrongType(PROMPT, prompt, "a string, or an array of strings or token ids");
    }
    if (!prompt.isEmpty() && prompt.get(0).isNumber()) {
      return List.of(tokens(fields, PROMPT, prompt));
    }
    List<RawPrompt> prompts = new ArrayList<>(prompt.size());
    for (JsonNode element : prompt) {
      String path = PROMPT + "[" + prompts.size() + "]";
      if (element.isString()) {
        prompts.add(text(path, element.stringValue()));
      } else if (element.isArray()) {
        prompts.add(tokens(fields, path, element));
      } else {
        throw fields.wrongType(path, element, "a string or an array of token ids");
      }
    }
    if (prompts.isEmpty()) {
      throw ApiError.invalidValue(PROMPT, "prompt is an empty array; send at least one text.")
          .exception();
    }
    return prompts;
  }

  private static RawPrompt text(String path, String text) {
    if (text.isEmpty()) {
      throw ApiError.invalidValue(path, path + " is empty; send the text to continue.").exception();
    }
    return new RawPrompt.Text(text);
  }

  private static RawPrompt tokens(FieldReader fields, String path, JsonNode array) {
    return new RawPrompt.Tokens(TokenIdReader.read(fields, path, array));
  }

  /** A prompt's text, for its echo. */
  private String text(RawPrompt prompt) {
    return switch (prompt) {
      case RawPrompt.Text(String text) -> text;
      case RawPrompt.Tokens(List<Integer> ids) -> TokenIdReader.text(ids, model, PROMPT);
    };
  }
}
