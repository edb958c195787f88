import { locate } from "./json-view.js";
import { element } from "./markdown.js";
import { SCHEMAS } from "./schemas.js";

const OWN = "own";
const REFUSED_AT = /^At (\/\S*): /;

/** The menu that says what an answer must look like, and the editor of its schema. */
export class AnswerFormat {
  #menu;
  #toggle;
  #editor;
  #schema;
  #problem;

  constructor({ menu, toggle, editor, schema, problem }) {
    this.#menu = menu;
    this.#toggle = toggle;
    this.#editor = editor;
    this.#schema = schema;
    this.#problem = problem;
    for (const [name, { label }] of SCHEMAS) {
      const option = element("option", "", [label]);
      option.value = name;
      menu.querySelector(`[value=${OWN}]`).before(option);
    }
    menu.addEventListener("change", () => this.#chosen());
    toggle.addEventListener("click", () => this.#show(editor.hidden));
    schema.addEventListener("input", () => {
      menu.value = OWN;
      this.#accept();
    });
    editor.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.#show(false);
        toggle.focus();
      }
    });
  }

  /** Chooses a ready schema, or text for an empty name. */
  choose(name) {
    this.#menu.value = name;
    this.#show(false);
    this.#chosen();
  }

  /**
   * What the next answer must follow: {name, label, schema}, or null for any text.
   *
   * @throws SyntaxError if the editor's text is no JSON; the editor says so
   */
  get() {
    const name = this.#menu.value;
    if (name === "") {
      return null;
    }
    try {
      const schema = JSON.parse(this.#schema.value);
      this.#accept();
      return { name, label: SCHEMAS.get(name)?.label ?? "JSON", schema };
    } catch (failure) {
      this.refuse(`The schema is not JSON: ${failure.message}`);
      throw failure;
    }
  }

  /** Opens the editor with the reason why the schema was refused, and selects the place it names. */
  refuse(message) {
    this.#show(true);
    this.#problem.textContent = message;
    this.#problem.hidden = false;
    this.#schema.setAttribute("aria-invalid", "true");
    this.#schema.focus();
    const pointer = REFUSED_AT.exec(message)?.[1];
    const place = pointer === undefined ? null : locate(this.#schema.value, pointer);
    if (place) {
      this.#schema.setSelectionRange(...place);
    }
  }

  #chosen() {
    const name = this.#menu.value;
    this.#toggle.hidden = name === "";
    if (name === "") {
      this.#show(false);
    } else if (name !== OWN) {
      this.#schema.value = JSON.stringify(SCHEMAS.get(name).schema, null, 2);
    } else {
      this.#schema.value ||= JSON.stringify(SCHEMAS.values().next().value.schema, null, 2);
      this.#show(true);
      this.#schema.focus();
    }
    this.#accept();
  }

  #show(open) {
    this.#editor.hidden = !open;
    this.#toggle.setAttribute("aria-expanded", String(open));
  }

  #accept() {
    this.#problem.hidden = true;
    this.#problem.textContent = "";
    this.#schema.removeAttribute("aria-invalid");
  }
}
