/** Cuts server-sent events out of text that arrives in pieces; only their data is kept. */
export class EventParser {
  #rest = "";
  #data = [];

  /** Takes the next piece and returns the data of each event that it completes. */
  push(text) {
    // A carriage return at the very end may be the first half of a line break.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    const events = [];
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) {
          events.push(this.#data.join("\n"));
        }
        this.#data = [];
      } else if (line === "data" || line.startsWith("data:")) {
        this.#data.push(line.slice(5).replace(/^ /, ""));
      }
    }
    return events;
  }
}

/** The data of each event of a response body. Leaving the loop early cancels the response. */
export async function* readEvents(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
