/**
 * A small part of Markdown as DOM nodes: fenced code, headings, lists, **bold** and `code`. Text only
 * ever becomes text nodes, so nothing a model writes can turn into markup.
 */

const FENCE = /^\s*```\s*([\w+#.-]*)\s*$/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const BULLET = /^\s*[-*]\s+(.*)$/;
const NUMBER = /^\s*(\d{1,9})[.)]\s+(.*)$/;
const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*)/;

/** Splits text into blocks: {kind, lines, language}. An unclosed fence is code up to the end. */
export function blocks(text) {
  const found = [];
  let open = null;
  const add = (kind, line) => {
    if (open?.kind !== kind) {
      found.push((open = { kind, lines: [] }));
    }
    open.lines.push(line);
  };
  for (const line of text.split("\n")) {
    const fence = FENCE.exec(line);
    if (open?.kind === "code") {
      if (fence && fence[1] === "") {
        open = null;
      } else {
        open.lines.push(line);
      }
    } else if (fence) {
      found.push((open = { kind: "code", lines: [], language: fence[1] }));
    } else if (line.trim() === "") {
      open = null;
    } else if (HEADING.test(line)) {
      found.push({ kind: "heading", lines: [HEADING.exec(line)[2]] });
      open = null;
    } else if (BULLET.test(line)) {
      add("bullets", line);
    } else if (NUMBER.test(line)) {
      add("numbers", line);
    } else {
      add("text", line);
    }
  }
  return found;
}

/** Shows growing text in an element; blocks that did not change keep their nodes. */
export class MarkdownView {
  #element;
  #shown = [];

  constructor(element) {
    this.#element = element;
  }

  show(text) {
    const next = blocks(text);
    next.forEach((block, i) => {
      const source = JSON.stringify(block);
      const old = this.#shown[i];
      if (old?.source === source) {
        return;
      }
      const node = render(block);
      if (old) {
        old.node.replaceWith(node);
      } else {
        this.#element.append(node);
      }
      this.#shown[i] = { source, node };
    });
    this.#shown.splice(next.length).forEach(({ node }) => node.remove());
  }
}

function render(block) {
  switch (block.kind) {
    case "code":
      return code(block);
    case "heading":
      return element("p", "heading", inline(block.lines[0]));
    case "bullets":
      return element("ul", "", block.lines.map((line) => element("li", "", inline(BULLET.exec(line)[1]))));
    case "numbers": {
      const list = element("ol", "", block.lines.map((line) => element("li", "", inline(NUMBER.exec(line)[2]))));
      list.start = Number(NUMBER.exec(block.lines[0])[1]);
      return list;
    }
    default:
      return element("p", "", inline(block.lines.join("\n")));
  }
}

function code(block) {
  return codeBox([block.language || "code"], element("code", "", [block.lines.join("\n")]));
}

/** A box for code, with a head and a button that copies what the code is when it is pressed. */
export function codeBox(head, code) {
  const copy = element("button", "quiet", ["Copy"]);
  copy.type = "button";
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Copying is not allowed";
    }
  });
  const body = element("pre", "", [code]);
  body.tabIndex = 0;
  return element("div", "code", [element("div", "code-head", [element("span", "", head), copy]), body]);
}

function inline(text) {
  return text
    .split(INLINE)
    .filter((part) => part !== "")
    .map((part) => {
      if (part.length > 2 && part.startsWith("`") && part.endsWith("`")) {
        return element("code", "", [part.slice(1, -1)]);
      }
      if (part.length > 4 && part.startsWith("**") && part.endsWith("**")) {
        return element("strong", "", [part.slice(2, -2)]);
      }
      return part;
    });
}

/** A new element; strings among the children become text nodes. */
export function element(name, className, children = []) {
  const node = document.createElement(name);
  if (className) {
    node.className = className;
  }
  node.append(...children);
  return node;
}
