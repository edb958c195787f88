package dev.lily.engine.chat;

/** A part of a message's content. */
public sealed interface ContentPart {
  record Text(String text) implements ContentPart {}

  /** An image; rendered as the template does, but refused by a text-only engine. */
  record Image() implements ContentPart {}

  /** A video; rendered as the template does, but refused by a text-only engine. */
  record Video() implements ContentPart {}
}
