package dev.lily.engine.chat;

import java.util.ArrayList;
import java.util.List;

/**
 * A message with its content as text.
 *
 * @param index of the message in the caller's conversation, for errors
 * @param content trimmed
 */
record Turn(int index, Message message, MarkedText content) {

  /**
   * Writes out the contents of a conversation's messages.
   *
   * @param addVisionId number images and videos through the conversation
   * @throws InvalidConversationException if a system message holds an image or a video
   */
  static List<Turn> of(List<Message> messages, boolean addVisionId) {
    VisionCount count = new VisionCount(addVisionId);
    List<Turn> turns = new ArrayList<>(messages.size());
    for (int i = 0; i < messages.size(); i++) {
      Message message = messages.get(i);
      MarkedText.Builder content = new MarkedText.Builder();
      List<ContentPart> parts = message.content();
      for (int j = 0; j < parts.size(); j++) {
        if (message instanceof Message.Instructions) {
          requireText(parts.get(j), "messages[%d].content[%d]".formatted(i, j));
        }
        switch (parts.get(j)) {
          case ContentPart.Text(String text) -> content.literal(text);
          case ContentPart.Image() -> content.template(count.image());
          case ContentPart.Video() -> content.template(count.video());
        }
      }
      turns.add(new Turn(i, message, content.build().trim()));
    }
    return turns;
  }

  private static void requireText(ContentPart part, String path) {
    String kind =
        switch (part) {
          case ContentPart.Text _ -> "";
          case ContentPart.Image() -> "images";
          case ContentPart.Video() -> "videos";
        };
    if (!kind.isEmpty()) {
      throw new InvalidConversationException(
          path, "System message cannot contain %s. Move them to a user message.".formatted(kind));
    }
  }

  private static final class VisionCount {
    private final boolean shown;
    private int images;
    private int videos;

    VisionCount(boolean shown) {
      this.shown = shown;
    }

    String image() {
      images++;
      return (shown ? "Picture " + images + ": " : "")
          + "<|vision_start|><|image_pad|><|vision_end|>";
    }

    String video() {
      videos++;
      return (shown ? "Video " + videos + ": " : "")
          + "<|vision_start|><|video_pad|><|vision_end|>";
    }
  }
}
