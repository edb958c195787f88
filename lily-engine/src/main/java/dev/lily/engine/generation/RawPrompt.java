package dev.lily.engine.generation;

import java.util.List;

/** A prompt that the model continues as it is, without the chat template. */
public sealed interface RawPrompt {
  /**
   * Text. None of it becomes a control token, whatever it looks like.
   *
   * @param text not empty
   */
  record Text(String text) implements RawPrompt {}

  /**
   * Token ids, control tokens included. For callers who tokenise by themselves; never make them
   * from text that somebody else wrote with a tokenizer that recognises control tokens.
   *
   * @param ids at least one
   */
  record Tokens(List<Integer> ids) implements RawPrompt {
    public Tokens {
      ids = List.copyOf(ids);
    }
  }
}
