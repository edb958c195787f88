import { AnswerFormat } from "./answer-format.js";
import { ApiError, describeEngine } from "./api.js";
import { Conversation } from "./conversation.js";
import { element } from "./markdown.js";
import { TurnView } from "./turn-view.js";

const EXAMPLES = [
  { kind: "Arithmetic", text: "What is 47 + 38?", thinking: true },
  { kind: "Tool calls", text: "What is the weather in Rome and Cairo?", weather: true },
  { kind: "Story", text: "Tell me a story about a fox named Mia." },
  { kind: "Structured answer", text: "Anna is 31 years old and lives in Oslo.", format: "person" },
  { kind: "Code", text: "Write a Java line that prints hello" },
  { kind: "Reasoning", text: "Sort these numbers: 42, 7, 99", thinking: true },
];

const RETRY_MILLIS = 5000;

const $ = (id) => document.getElementById(id);
const [prompt, thinking, weather, temperature] = ["prompt", "thinking", "weather", "temperature"].map($);
const [send, stop, newChat, scroll, log, welcome, status] =
  ["send", "stop", "new-chat", "scroll", "log", "welcome", "status"].map($);

const answerFormat = new AnswerFormat({
  menu: $("format"),
  toggle: $("schema-toggle"),
  editor: $("schema-editor"),
  schema: $("schema"),
  problem: $("schema-problem"),
});
const conversation = new Conversation();
let model = null;
/** Aborts the answer that is being streamed; null when none is. */
let running = null;

function showEngine(engine) {
  model = engine.model ?? model;
  $("engine").dataset.state = engine.up ? "up" : "down";
  $("model").textContent = engine.model ?? "The engine does not answer";
  $("backend").textContent = engine.backend;
  const tiny = engine.model?.startsWith("lily-nano") ?? false;
  $("caution").textContent = tiny
    ? "lily-nano is a tiny demonstration model with a few trained skills."
    : "";
  if (!engine.up) {
    setTimeout(async () => showEngine(await describeEngine()), RETRY_MILLIS);
  }
  return tiny;
}

function updateButtons() {
  send.hidden = running !== null;
  stop.hidden = running === null;
  send.disabled = prompt.value.trim() === "";
  newChat.disabled = running !== null || log.childElementCount === 0;
}

function fitPrompt() {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight}px`;
  updateButtons();
}

/** Follows the growing answer, unless the reader has scrolled away from the end. */
function follow() {
  if (pinned) {
    scroll.scrollTop = scroll.scrollHeight;
  }
}

let pinned = true;
scroll.addEventListener("scroll", () => {
  pinned = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 48;
});

async function ask(text) {
  let format;
  try {
    format = answerFormat.get();
  } catch {
    restore(text);
    return;
  }
  welcome.hidden = true;
  pinned = true;
  running = new AbortController();
  const { signal } = running;
  const view = new TurnView(text, log, follow, format);
  updateButtons();
  status.textContent = "Answering";
  let refused = "";
  const options = {
    model,
    thinking: thinking.checked,
    weather: weather.checked,
    temperature: Number(temperature.value),
    format,
  };
  try {
    await conversation.ask(text, options, view, signal);
    view.finished();
    status.textContent = "Answer complete";
  } catch (failure) {
    if (signal.aborted) {
      view.stopped();
      status.textContent = "Stopped";
    } else if (failure instanceof ApiError && failure.param === "response_format") {
      status.textContent = "";
      view.remove();
      welcome.hidden = log.childElementCount > 0;
      restore(text);
      refused = failure.message;
    } else {
      status.textContent = "";
      view.failed(explain(failure), () => ask(text));
      describeEngine().then(showEngine);
    }
  } finally {
    running = null;
    updateButtons();
    if (refused) {
      answerFormat.refuse(refused);
    } else {
      focusPrompt();
    }
  }
}

/** Puts a message that was not sent back where it was written. */
function restore(text) {
  prompt.value = text;
  fitPrompt();
}

function explain(failure) {
  if (!(failure instanceof ApiError)) {
    console.error(failure);
    return "The page failed to read the answer.";
  }
  return failure.retryAfter > 0 ? `${failure.message} Try again in ${failure.retryAfter} s.` : failure.message;
}

/** Ready for the next message, but without a touch keyboard jumping up. */
function focusPrompt() {
  if (matchMedia("(hover: hover)").matches) {
    prompt.focus({ preventScroll: true });
  }
}

function submit() {
  const text = prompt.value.trim();
  if (text === "" || running) {
    return;
  }
  prompt.value = "";
  fitPrompt();
  ask(text);
}

for (const example of EXAMPLES) {
  const button = element("button", "", [element("span", "", [example.kind]), example.text]);
  button.type = "button";
  button.addEventListener("click", () => {
    thinking.checked = example.thinking ?? false;
    weather.checked = example.weather ?? false;
    answerFormat.choose(example.format ?? "");
    ask(example.text);
  });
  $("examples").append(element("li", "", [button]));
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
prompt.addEventListener("input", fitPrompt);
prompt.addEventListener("keydown", (event) => {
  // While an input method is composing, Enter picks a candidate.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    running?.abort();
  }
});
stop.addEventListener("click", () => running?.abort());
newChat.addEventListener("click", () => {
  conversation.clear();
  log.replaceChildren();
  welcome.hidden = false;
  scroll.scrollTop = 0;
  updateButtons();
  focusPrompt();
});

updateButtons();
const tiny = showEngine(await describeEngine());
// A small model is most reliable when it always takes the likeliest token; a large one that reasons
// would go in circles.
temperature.value = tiny ? "0" : "1";
thinking.checked = !tiny;
