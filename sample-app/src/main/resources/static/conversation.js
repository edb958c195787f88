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
  async ask(text, { model, thinking, weather, temperature, format }, view, signal) {
    const turn = [{ role: "user", content: text }];
    const made = new Set();
    let tools = weather;
    try {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const request = {
          model,
          messages: [...instructions(format), ...this.#messages, ...turn],
          temperature,
          chat_template_kwargs: { enable_thinking: thinking },
          ...(weather && { tools: [WEATHER_TOOL], tool_choice: tools ? "auto" : "none" }),
          ...(format && { response_format: responseFormat(format) }),
        };
        const reply = { role: "assistant", content: "" };
        turn.push(reply);
        await receive(request, reply, view, signal);
        if (!reply.tool_calls) {
          return;
        }
        // Who asks again for what has been answered would go on for ever.
        tools = reply.tool_calls.some((call) => !made.has(JSON.stringify(call.function)));
        for (const call of reply.tool_calls) {
          made.add(JSON.stringify(call.function));
          const result = runTool(call.function);
          view.toolResult(call, result);
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

/** The format is enforced all the same; told of it, the model knows what to put where. */
function instructions(format) {
  return format
    ? [{ role: "system", content: `Answer only with JSON that fits this schema:\n${JSON.stringify(format.schema)}` }]
    : [];
}

function responseFormat({ name, schema }) {
  return { type: "json_schema", json_schema: { name, schema, strict: true } };
}

/** Fills `reply` from the stream of one completion, and shows it as it grows. */
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
      view.toolCall(calls[part.index]);
    }
  }
  if (calls.length > 0) {
    reply.tool_calls = calls;
  }
  first ??= last;
  view.roundEnded({ usage, finish, firstMillis: first - started, streamMillis: last - first });
}
