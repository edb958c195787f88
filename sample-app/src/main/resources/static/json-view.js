import { element } from "./markdown.js";

// A string that is still being written counts as one up to its end.
const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs;
const INDENT = "  ";

/**
 * The tokens of JSON text, also of its beginning only: {text, start, end, depth, kind, path}. The
 * kind is key, string, number, word or punctuation; the path is the JSON pointer of the value that a
 * token belongs to.
 */
export function* tokens(json) {
  const open = [];
  for (const { 0: text, index: start } of json.matchAll(TOKEN)) {
    const inner = open.at(-1);
    const token = { text, start, end: start + text.length, kind: "punctuation" };
    if (text === "}" || text === "]") {
      open.pop();
    } else if (text === "," && inner) {
      inner.index++;
      inner.atKey = inner.object;
    } else if (text === ":" && inner) {
      inner.atKey = false;
    } else if (text.startsWith('"')) {
      token.kind = inner?.atKey ? "key" : "string";
      if (inner?.atKey) {
        inner.key = unquoted(text);
      }
    } else if (!/[{[]/.test(text)) {
      token.kind = /^[-\d]/.test(text) ? "number" : "word";
    }
    token.depth = open.length;
    token.path = open.map(({ object, key, index }) => `/${escaped(object ? key : index)}`).join("");
    yield token;
    if (text === "{" || text === "[") {
      const object = text === "{";
      open.push({ object, atKey: object, key: "", index: 0 });
    }
  }
}

/** Where the value at a JSON pointer begins in a text, with its key if it has one; null if nowhere. */
export function locate(json, pointer) {
  for (const { path, kind, text, start, end } of tokens(json)) {
    if (path === pointer && !/[\]},:]/.test(kind === "punctuation" ? text : "")) {
      return [start, end];
    }
  }
  return null;
}

/** Writes JSON, also an unfinished one, into an element: a line for each value, kinds as classes. */
export function showJson(node, json) {
  const parts = [];
  let before = "";
  for (const { text, kind, depth } of tokens(json)) {
    const closes = text === "}" || text === "]";
    const opened = before === "{" || before === "[";
    if (before === "," || (opened ? !closes : closes)) {
      parts.push("\n", INDENT.repeat(depth));
    }
    parts.push(kind === "punctuation" ? text : element("span", kind, [text]));
    if (text === ":") {
      parts.push(" ");
    }
    before = kind === "punctuation" ? text : "";
  }
  node.replaceChildren(...parts);
}

function unquoted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function escaped(part) {
  return String(part).replaceAll("~", "~0").replaceAll("/", "~1");
}
