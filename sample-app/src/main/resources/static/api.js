import { readEvents } from "./sse.js";

const BACKENDS = new Map([
  ["cpu", "CPU"],
  ["metal", "Metal"],
]);

/** A failure with a sentence for the reader, and how many seconds to wait before trying again. */
export class ApiError extends Error {
  constructor(message, { code = "", param = "", retryAfter = 0 } = {}) {
    super(message);
    this.code = code;
    this.param = param;
    this.retryAfter = retryAfter;
  }
}

/** Streams the chunks of one completion. Aborting the signal closes the connection. */
export async function* streamCompletion(request, signal) {
  let response;
  try {
    response = await fetch("v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
      signal,
    });
  } catch (failure) {
    throw unlessAborted(failure, signal, "The application does not answer. Is it still running?");
  }
  if (!response.ok) {
    throw await refusal(response);
  }
  let complete = false;
  try {
    for await (const data of readEvents(response.body)) {
      if (data === "[DONE]") {
        complete = true;
        break;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) {
        throw new ApiError(chunk.error.message, { code: chunk.error.code ?? "" });
      }
      yield chunk;
    }
  } catch (failure) {
    throw unlessAborted(failure, signal, "The connection broke off in the middle of the answer.");
  }
  if (!complete) {
    throw new ApiError("The connection was closed before the answer was complete.");
  }
}

/** What runs behind the page: model, back end in words, and whether it is up. Never fails. */
export async function describeEngine() {
  const [models, health] = await Promise.all([json("v1/models"), json("actuator/health")]);
  const lily = health?.components?.lily;
  return {
    up: models !== null && (lily?.status ?? "UP") === "UP",
    model: models?.data?.[0]?.id ?? null,
    backend: lily?.details ? backendInWords(lily.details) : "",
  };
}

function backendInWords({ backend, device, deviceDetail }) {
  const name = BACKENDS.get(backend) ?? backend;
  return (device.includes(name) ? [device, deviceDetail] : [name, device, deviceDetail]).join(" \u00b7 ");
}

async function json(path) {
  try {
    const response = await fetch(path, { headers: { Accept: "application/json" } });
    // An unhealthy application answers 503, with the same body.
    return response.ok || response.status === 503 ? await response.json() : null;
  } catch {
    return null;
  }
}

async function refusal(response) {
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const error = await response.json().then((body) => body.error, () => null);
  if (response.status === 429 || response.status === 503) {
    return new ApiError("The engine is busy with other requests.", { code: "busy", retryAfter });
  }
  if (error?.code === "context_length_exceeded") {
    return new ApiError("This conversation no longer fits the model's context. Start a new chat.", error);
  }
  return new ApiError(error?.message ?? `The application answered with status ${response.status}.`, {
    code: error?.code ?? "",
    param: error?.param ?? "",
  });
}

function unlessAborted(failure, signal, message) {
  return signal.aborted || failure instanceof ApiError ? failure : new ApiError(message);
}
