package dev.lily.engine.chat;

/**
 * A prompt as text.
 *
 * @param text byte for byte what the checkpoint's template gives
 * @param literalRanges pairs {@code start, end} of char offsets, ascending, of everything that came
 *     from the caller (contents, tool definitions, names, arguments) rather than from the template;
 *     control tokens in there are ordinary text
 * @param thinking whether the model's answer starts inside its reasoning
 */
public record RenderedPrompt(String text, int[] literalRanges, boolean thinking) {}
