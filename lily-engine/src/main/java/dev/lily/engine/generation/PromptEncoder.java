package dev.lily.engine.generation;

import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.chat.ContentPart;
import dev.lily.engine.chat.InvalidConversationException;
import dev.lily.engine.chat.Message;
import dev.lily.engine.chat.RenderedPrompt;
import dev.lily.engine.tokenizer.Tokenizer;
import dev.lily.engine.tokenizer.TokenizerException;
import java.util.List;

/**
 * Turns a request's conversation into token ids, or refuses it. Runs on the caller's thread, before
 * any queue. Immutable and thread-safe.
 */
public final class PromptEncoder {
  private final ChatTemplate template;
  private final Tokenizer tokenizer;
  private final int contextLength;

  /**
   * @param contextLength most tokens of prompt and answer together
   */
  public PromptEncoder(ChatTemplate template, Tokenizer tokenizer, int contextLength) {
    this.template = template;
    this.tokenizer = tokenizer;
    this.contextLength = contextLength;
  }

  /**
   * Renders and tokenises; what callers wrote never becomes a control token.
   *
   * @throws InvalidRequestException if the conversation cannot be rendered or has images or videos,
   *     or if a raw prompt is empty or has an id that no token has
   * @throws ContextOverflowException if no room is left for one token of an answer
   */
  public EncodedPrompt encode(GenerationRequest request) {
    RawPrompt raw = request.rawPrompt();
    EncodedPrompt prompt =
        raw == null ? encodeConversation(request) : new EncodedPrompt(encodeRaw(raw), false);
    int length = prompt.tokens().length;
    if (length >= contextLength) {
      throw new ContextOverflowException(length, contextLength);
    }
    return prompt;
  }

  private EncodedPrompt encodeConversation(GenerationRequest request) {
    refuseUnsupportedContent(request.conversation().messages());
    boolean thinking = request.thinking() == null || request.thinking();
    RenderedPrompt prompt;
    try {
      prompt =
          template.render(
              request.conversation(),
              new ChatTemplate.Options(true, thinking, request.preserveThinking(), false));
    } catch (InvalidConversationException e) {
      throw new InvalidRequestException(e.path(), String.valueOf(e.getMessage()), e);
    }
    return new EncodedPrompt(
        tokenizer.encode(prompt.text(), prompt.literalRanges()), prompt.thinking());
  }

  private int[] encodeRaw(RawPrompt raw) {
    int[] tokens =
        switch (raw) {
          case RawPrompt.Text(String text) -> tokenizer.encode(text, new int[] {0, text.length()});
          case RawPrompt.Tokens(List<Integer> ids) -> checked(ids);
        };
    if (tokens.length == 0) {
      throw new InvalidRequestException(
          "rawPrompt", "The prompt is empty; give the model at least one token to continue");
    }
    return tokens;
  }

  private int[] checked(List<Integer> ids) {
    int[] tokens = new int[ids.size()];
    for (int i = 0; i < tokens.length; i++) {
      tokens[i] = ids.get(i);
      try {
        tokenizer.bytes(tokens[i]);
      } catch (TokenizerException e) {
        throw new InvalidRequestException("rawPrompt", String.valueOf(e.getMessage()), e);
      }
    }
    return tokens;
  }

  private static void refuseUnsupportedContent(List<Message> messages) {
    for (int m = 0; m < messages.size(); m++) {
      List<ContentPart> parts =
          switch (messages.get(m)) {
            case Message.Instructions message -> message.content();
            case Message.User message -> message.content();
            case Message.Assistant message -> message.content();
            case Message.ToolResult message -> message.content();
          };
      for (int p = 0; p < parts.size(); p++) {
        switch (parts.get(p)) {
          case ContentPart.Text _ -> {}
          case ContentPart.Image _ -> throw unsupported(m, p, "an image");
          case ContentPart.Video _ -> throw unsupported(m, p, "a video");
        }
      }
    }
  }

  private static InvalidRequestException unsupported(int message, int part, String what) {
    String path = "messages[" + message + "].content[" + part + "]";
    return new InvalidRequestException(
        path,
        "Unsupported content type: %s is %s, but this engine reads text only. Leave it out or describe it in words."
            .formatted(path, what));
  }
}
