// The sample application under test, as the environment names it, and what all clients ask of it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

export const MODEL = 'lily-nano-4bit';
export const SERVER = required('LILY_SERVER');
export const BASE_URL = SERVER + '/v1';
export const KEY = required('LILY_KEY');

export const SUM = 'What is 60 - 16?';
export const SUM_ANSWER = '60 - 16 = 44';
export const STORY = 'Tell me a story about a fox named Mia.';

/** An answer with this many tokens at least outlasts every test. */
export const ENDLESS = { min_tokens: 7000 };

export const WEATHER_SYSTEM = 'You are a helpful assistant with tools.';
export const WEATHER_QUESTION = 'What is the weather in Rome and Cairo?';
export const WEATHER_ANSWER = /Rome.*Cairo/;

export function weather(city) {
  return city === 'Rome' ? 'sunny, 25 degrees' : 'clear, 33 degrees';
}

function required(name) {
  const value = process.env[name];
  assert.ok(value, name + ' is not set');
  return value;
}

async function metric(path, statistic) {
  const response = await fetch(SERVER + '/actuator/metrics/' + path);
  if (response.status === 404) {
    return 0;
  }
  const { measurements } = await response.json();
  return measurements.find((measurement) => measurement.statistic === statistic).value;
}

export const cancelled = () => metric('lily.requests?tag=outcome:cancelled', 'COUNT');
export const active = () => metric('lily.sessions.active', 'VALUE');

/** Runs what lets a client go away in the middle of an answer, and sees that the engine stops. */
export async function stopsTheEngine(goAway) {
  const before = await cancelled();
  await goAway();
  const deadline = Date.now() + 10_000;
  while ((await cancelled()) !== before + 1 || (await active()) !== 0) {
    assert.ok(Date.now() < deadline, 'the engine still works 10 s after the client went away');
    await sleep(20);
  }
}

export async function untilActive() {
  const deadline = Date.now() + 10_000;
  while ((await active()) !== 1) {
    assert.ok(Date.now() < deadline, 'the engine does not begin');
    await sleep(20);
  }
}
