import { ApiError, streamCompletion } from "./api.js";
import { runTool, WEATHER_TOOL } from "./tools.js";

const MAX_ROUNDS = 6;

/** The turns so far, and the loop that answers one more: complete, run called tools, complete again. */
export class Conversation {
  #messages = [];

  clear() {
    this.#messages = [];
  }

  /**
   * Answers one message and tells `view` of everything on its way. A turn that ends without text,
   * because it was stopped or failed, leaves no trace, so that it can be asked again.
   */
  async ask(text, { model, thinking, weather, temperature }, view, signal) {
    const turn = [{ role: "user", content: text }];
    try {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const request = {
          model,
          messages: [...this.#messages, ...turn],
          temperature,
          chat_template_kwargs: { enable_thinking: thinking },
          ...(weather && { tools: [WEATHER_TOOL] }),
        };
        const reply = { role: "assistant", content: "" };
        turn.push(reply);
        await receive(request, reply, view, signal);
        if (!reply.tool_calls) {
          return;
        }
        for (const call of reply.tool_calls) {
          const result = runTool(call.function);
          view.toolCall(call.function, result);
          turn.push({ role: "tool", tool_call_id: call.id, content: result });
        }
      }
      throw new ApiError("The model kept calling tools without answering.");
    } finally {
      const last = turn.at(-1);
      if (last.role === "assistant" && last.content !== "") {
        this.#messages.push(...turn);
      }
    }
  }
}

/** Fills `reply` from the stream of one completion; tool calls only once they are whole. */
async function receive(request, reply, view, signal) {
  const started = performance.now();
  let first = null;
  let last = started;
  let finish = null;
  let usage = null;
  const calls = [];
  for await (const chunk of streamCompletion(request, signal)) {
    usage = chunk.usage ?? usage;
    const choice = chunk.choices?.[0];
    const { reasoning_content: reasoning, content, tool_calls: parts = [] } = choice?.delta ?? {};
    if (reasoning || content || parts.length > 0) {
      first ??= performance.now();
    }
    if (choice?.finish_reason) {
      finish = choice.finish_reason;
      last = performance.now();
    }
    if (reasoning) {
      reply.reasoning_content = (reply.reasoning_content ?? "") + reasoning;
      view.reasoning(reply.reasoning_content);
    }
    if (content) {
      reply.content += content;
      view.text(reply.content);
    }
    for (const part of parts) {
      calls[part.index] ??= { id: part.id, type: "function", function: { name: part.function.name, arguments: "" } };
      calls[part.index].function.arguments += part.function.arguments ?? "";
    }
  }
  if (calls.length > 0) {
    reply.tool_calls = calls;
  }
  first ??= last;
  view.roundEnded({ usage, finish, firstMillis: first - started, streamMillis: last - first });
}
