import { showJson } from "./json-view.js";
import { codeBox, element, MarkdownView } from "./markdown.js";

const TAIL_LENGTH = 56;

/** One question and everything that answers it: thoughts, tool calls, text, figures, an error. */
export class TurnView {
  #question;
  #root;
  #steps;
  #figures;
  #onGrow;
  #format;
  #thought = null;
  #answer = null;
  #calls = new Map();
  #total = { tokens: 0, streamed: 0, streamMillis: 0, firstMillis: null, prompt: 0, cached: 0 };

  /** `format` names what the answer has to follow: {label}; null for any text. */
  constructor(question, log, onGrow, format) {
    this.#onGrow = onGrow;
    this.#format = format;
    this.#steps = element("div", "steps");
    this.#figures = element("p", "figures");
    this.#figures.hidden = true;
    this.#root = element("article", "reply", [element("h2", "unseen", ["Lily"]), this.#steps, this.#figures]);
    this.#root.setAttribute("aria-busy", "true");
    this.#question = element("article", "question", [element("h2", "unseen", ["You"]), element("p", "", [question])]);
    log.append(this.#question, this.#root);
    this.#wait();
  }

  reasoning(text) {
    if (!this.#thought) {
      const tail = element("span", "tail");
      const summary = element("summary", "", ["Thinking", tail]);
      const body = element("p");
      const details = element("details", "thought live", [summary, body]);
      this.#thought = { details, summary, tail, body, started: performance.now() };
      this.#add(details);
    }
    this.#thought.body.textContent = text.trim();
    this.#thought.tail.textContent = lastWords(text);
    this.#onGrow();
  }

  text(text) {
    this.#endThought();
    if (!this.#answer) {
      const body = element("div", "answer");
      this.#answer = this.#format
        ? new JsonAnswer(body, this.#format.label, this.#onGrow)
        : new MarkdownView(body);
      this.#add(body);
    }
    this.#answer.show(text);
    this.#onGrow();
  }

  /** A call as far as it is known; comes again when there is more of it. */
  toolCall({ id, function: { name, arguments: args } }) {
    this.#endThought();
    let call = this.#calls.get(id);
    if (!call) {
      call = { args: element("code"), label: element("span", "label", ["calling\u2026"]), result: element("p", "result") };
      call.card = element("section", "tool live", [
        element("p", "", [element("code", "name", [name]), call.args, call.label]),
        call.result,
      ]);
      call.card.setAttribute("aria-label", `Tool call ${name}`);
      this.#calls.set(id, call);
      this.#add(call.card);
      this.#wait();
    }
    call.args.textContent = args;
    this.#onGrow();
  }

  toolResult({ id }, result) {
    const { card, label, result: line } = this.#calls.get(id);
    const failed = "error" in JSON.parse(result);
    card.classList.remove("live");
    card.classList.toggle("failed", failed);
    label.textContent = failed ? "tool call failed" : "tool call";
    const arrow = element("span", "", ["\u2192"]);
    arrow.setAttribute("aria-hidden", "true");
    line.append(element("span", "unseen", ["Result "]), arrow, element("code", "", [result]));
    this.#onGrow();
  }

  /** A completion has ended; after tool calls another one follows in the same turn. */
  roundEnded({ usage, finish, firstMillis, streamMillis }) {
    this.#endThought();
    this.#answer?.flush?.();
    if (finish === "stop") {
      this.#answer?.complete?.();
    }
    this.#answer = null;
    const total = this.#total;
    total.firstMillis ??= firstMillis;
    if (usage) {
      total.tokens += usage.completion_tokens;
      // A tool call comes in one piece when it is whole, so its round says nothing about speed.
      if (finish !== "tool_calls") {
        total.streamed += Math.max(0, usage.completion_tokens - 1);
        total.streamMillis += streamMillis;
      }
      total.prompt = usage.prompt_tokens;
      total.cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
      this.#showFigures();
    }
    if (finish === "length") {
      this.#notice("The answer was cut off at the token limit.");
    }
  }

  finished() {
    this.#close();
    if (this.#steps.childElementCount === 0) {
      this.#notice("The model had nothing to say.");
    }
  }

  stopped() {
    this.#close();
    this.#notice("Stopped.");
  }

  remove() {
    this.#question.remove();
    this.#root.remove();
  }

  failed(message, again) {
    this.#close();
    const button = element("button", "quiet", ["Try again"]);
    button.type = "button";
    button.addEventListener("click", () => {
      this.remove();
      again();
    });
    const box = element("div", "failure", [element("p", "", [message]), button]);
    box.setAttribute("role", "alert");
    this.#steps.append(box);
    this.#onGrow();
  }

  #add(node) {
    this.#clearWaiting();
    this.#steps.append(node);
  }

  #wait() {
    this.#add(element("div", "waiting", [element("span", "unseen", ["Waiting"])]));
    this.#onGrow();
  }

  #clearWaiting() {
    this.#steps.querySelector(".waiting")?.remove();
  }

  #close() {
    this.#endThought();
    this.#answer?.flush?.();
    this.#clearWaiting();
    for (const card of this.#steps.querySelectorAll(".tool.live")) {
      card.classList.remove("live");
      card.querySelector(".label").textContent = "not run";
    }
    this.#root.removeAttribute("aria-busy");
    this.#onGrow();
  }

  #endThought() {
    if (this.#thought) {
      const { details, summary, started } = this.#thought;
      details.classList.remove("live");
      summary.textContent = `Thought for ${seconds(performance.now() - started)}`;
      this.#thought = null;
    }
  }

  #notice(text) {
    this.#steps.append(element("p", "notice", [text]));
    this.#onGrow();
  }

  #showFigures() {
    const { tokens, streamed, streamMillis, firstMillis, prompt, cached } = this.#total;
    const parts = [`${tokens} ${tokens === 1 ? "token" : "tokens"}`];
    if (streamed > 0 && streamMillis > 0) {
      parts.push(`${rate((streamed * 1000) / streamMillis)} tokens/s`);
    }
    parts.push(`first output after ${seconds(firstMillis)}`);
    parts.push(`${prompt} prompt tokens${cached > 0 ? `, ${cached} cached` : ""}`);
    this.#figures.replaceChildren(...parts.map((part) => element("span", "", [part])));
    this.#figures.hidden = false;
  }
}

/**
 * An answer that follows a schema. The engine vouches for it once it has ended by itself. It is drawn once a frame: all
 * of it changes with every token, and tokens may come faster than that can be shown.
 */
class JsonAnswer {
  #code = element("code", "json");
  #mark = element("span", "mark");
  #onGrow;
  #text = "";
  #frame = 0;

  constructor(body, label, onGrow) {
    this.#onGrow = onGrow;
    const box = codeBox([label, this.#mark], this.#code);
    box.classList.add("structured");
    body.append(box);
  }

  show(text) {
    this.#text = text;
    this.#frame ||= requestAnimationFrame(() => {
      this.flush();
      this.#onGrow();
    });
  }

  /** Draws what has not been drawn yet. */
  flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    showJson(this.#code, this.#text);
  }

  complete() {
    this.#mark.textContent = "follows the schema";
  }
}

function lastWords(text) {
  return text.trim().slice(-TAIL_LENGTH - 1).replace(text.length > TAIL_LENGTH ? /^\S*\s+/ : "", "");
}

function rate(perSecond) {
  return perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond).toString();
}

function seconds(millis) {
  return millis < 10_000 ? `${(millis / 1000).toFixed(millis < 1000 ? 2 : 1)} s` : `${Math.round(millis / 1000)} s`;
}
