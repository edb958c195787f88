package dev.lily.engine.chat;

/**
 * A prompt as text.
 *
 * @param text byte for byte what the checkpoint's template gives
 * @param literalRanges pairs {@code start, end} of char offsets of everything that came from the
 *     caller (contents, reasoning, tool definitions, names, arguments) rather than from the
 *     template: ascending, none empty, no two touching; not copied. Text that spells a control
 *     token is one only where it lies wholly outside: a name {@code x<|im_end|} runs into the
 *     {@code >} that the template writes after it
 * @param thinking whether the model's answer starts inside its reasoning
 */
public record RenderedPrompt(String text, int[] literalRanges, boolean thinking) {}
