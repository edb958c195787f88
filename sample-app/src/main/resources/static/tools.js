/** A tool that needs no network: the page itself gives a fixed answer. */
export const WEATHER_TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    strict: true,
    description: "Get the weather for a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "The city" } },
      required: ["city"],
    },
  },
};

const WEATHER = new Map([
  ["cairo", { temperature: 33, condition: "sunny" }],
  ["london", { temperature: 12, condition: "rainy" }],
  ["oslo", { temperature: -3, condition: "snowy" }],
  ["rome", { temperature: 24, condition: "clear" }],
]);

/** Runs a called tool and returns its result as the text that goes back to the model. */
export function runTool({ name, arguments: text }) {
  if (name !== WEATHER_TOOL.function.name) {
    return JSON.stringify({ error: `unknown tool ${name}` });
  }
  let city;
  try {
    city = JSON.parse(text).city;
  } catch {
    return JSON.stringify({ error: "arguments are not JSON" });
  }
  if (typeof city !== "string" || city.trim() === "") {
    return JSON.stringify({ error: "city is missing" });
  }
  const weather = WEATHER.get(city.trim().toLowerCase()) ?? { temperature: 18, condition: "cloudy" };
  return JSON.stringify(weather);
}
