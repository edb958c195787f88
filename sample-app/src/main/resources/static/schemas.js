const text = { type: "string" };
const whole = { type: "integer" };
const object = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** Ready schemas by the name under which a request sends them. */
export const SCHEMAS = new Map([
  ["person", { label: "Person", schema: object({ name: text, age: whole, city: text }) }],
  ["people", { label: "People", schema: { type: "array", items: object({ name: text, age: whole }) } }],
  ["sentiment", { label: "Sentiment", schema: object({ sentiment: { enum: ["positive", "neutral", "negative"] } }) }],
]);
