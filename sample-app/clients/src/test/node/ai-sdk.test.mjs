import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, Output, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import {
  BASE_URL,
  ENDLESS,
  KEY,
  MODEL,
  STORY,
  SUM,
  SUM_ANSWER,
  WEATHER_ANSWER,
  WEATHER_QUESTION,
  WEATHER_SYSTEM,
  stopsTheEngine,
  untilActive,
  weather,
} from './sample.mjs';

const lily = createOpenAICompatible({
  name: 'lily',
  baseURL: BASE_URL,
  apiKey: KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = lily(MODEL);

const weatherTools = (asked) => ({
  get_weather: tool({
    description: 'Get the weather in a given city.',
    inputSchema: z.object({ city: z.string().describe('The city') }),
    execute: async ({ city }) => {
      asked.push(city);
      return weather(city);
    },
  }),
});

describe('npm ai with @ai-sdk/openai-compatible', () => {
  it('answers with usage', async () => {
    const { text, finishReason, usage } = await generateText({ model, prompt: SUM });
    assert.equal(text, SUM_ANSWER);
    assert.equal(finishReason, 'stop');
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
    assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
  });

  it('streams the same answer in pieces, with usage', async () => {
    const result = streamText({ model, prompt: SUM });
    const pieces = [];
    for await (const piece of result.textStream) {
      pieces.push(piece);
    }
    assert.equal(pieces.join(''), SUM_ANSWER);
    assert.ok(pieces.length > 1);
    const whole = await generateText({ model, prompt: SUM });
    assert.equal((await result.usage).totalTokens, whole.usage.totalTokens);
  });

  it('keeps reasoning out of the answer', async () => {
    const result = streamText({
      model,
      prompt: 'What day is before Saturday?',
      providerOptions: { lily: { reasoningEffort: 'high' } },
    });
    assert.equal(await result.text, 'Friday comes before Saturday.');
    assert.equal(await result.reasoningText, 'The days go Friday, Saturday.');
  });

  it('runs tools in a loop', async () => {
    const asked = [];
    const { text, steps } = await generateText({
      model,
      system: WEATHER_SYSTEM,
      prompt: WEATHER_QUESTION,
      tools: weatherTools(asked),
      stopWhen: stepCountIs(5),
    });
    assert.match(text, WEATHER_ANSWER);
    assert.deepEqual(asked, ['Rome', 'Cairo']);
    assert.equal(steps.length, 2);
  });

  it('runs tools in a loop of streams', async () => {
    const asked = [];
    const result = streamText({
      model,
      system: WEATHER_SYSTEM,
      prompt: WEATHER_QUESTION,
      tools: weatherTools(asked),
      stopWhen: stepCountIs(5),
    });
    assert.match(await result.text, WEATHER_ANSWER);
    assert.deepEqual(asked, ['Rome', 'Cairo']);
  });

  it('maps errors', async () => {
    await assert.rejects(
      generateText({ model: lily('other'), prompt: SUM, maxRetries: 0 }),
      (error) => APICallError.isInstance(error) && error.statusCode === 404,
    );
    await assert.rejects(
      generateText({ model, prompt: SUM, topP: 2, maxRetries: 0 }),
      (error) => /top_p/.test(error.message) && error.isRetryable === false,
    );
  });

  it('stops the engine when a stream is aborted', async () => {
    await stopsTheEngine(async () => {
      const abort = new AbortController();
      const result = streamText({
        model,
        prompt: STORY,
        providerOptions: { lily: ENDLESS },
        abortSignal: abort.signal,
      });
      let pieces = 0;
      for await (const _ of result.textStream) {
        if (++pieces === 5) {
          abort.abort();
        }
      }
    });
  });

  it('stops the engine when a call is aborted', async () => {
    await stopsTheEngine(async () => {
      const abort = new AbortController();
      const call = generateText({
        model,
        prompt: STORY,
        providerOptions: { lily: ENDLESS },
        abortSignal: abort.signal,
      });
      const rejected = assert.rejects(call);
      await untilActive();
      abort.abort();
      await rejected;
    });
  });

  it('answers by a JSON schema', async () => {
    const sumOnly = Output.object({ schema: z.object({ sum: z.number().int() }) });
    const { output } = await generateText({ model, output: sumOnly, prompt: SUM });
    assert.deepEqual(Object.keys(output), ['sum']);
    assert.ok(Number.isInteger(output.sum));
  });
});

describe('npm ai with @ai-sdk/openai, by way of responses', () => {
  const openai = createOpenAI({ baseURL: BASE_URL, apiKey: KEY });
  const responses = openai.responses(MODEL);

  it('answers by a JSON schema', async () => {
    const output = Output.object({ schema: z.object({ sum: z.number().int() }) });
    const answer = await generateText({ model: responses, output, prompt: SUM });
    assert.deepEqual(Object.keys(answer.output), ['sum']);
    assert.ok(Number.isInteger(answer.output.sum));
  });

  it('answers with usage', async () => {
    const { text, finishReason, usage } = await generateText({ model: responses, prompt: SUM });
    assert.equal(text, SUM_ANSWER);
    assert.equal(finishReason, 'stop');
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  });

  it('streams the same answer in pieces', async () => {
    const result = streamText({ model: responses, prompt: SUM });
    const pieces = [];
    for await (const piece of result.textStream) {
      pieces.push(piece);
    }
    assert.equal(pieces.join(''), SUM_ANSWER);
    assert.ok(pieces.length > 1);
    assert.ok((await result.usage).totalTokens > 0);
  });

  it('reads reasoning as its summary', async () => {
    const result = streamText({
      model: responses,
      prompt: 'What day is before Saturday?',
      providerOptions: {
        openai: { reasoningSummary: 'auto', reasoningEffort: 'high', forceReasoning: true },
      },
    });
    assert.equal(await result.text, 'Friday comes before Saturday.');
    assert.equal(await result.reasoningText, 'The days go Friday, Saturday.');
  });

  it('runs tools in a loop of streams, with nothing stored', async () => {
    const asked = [];
    const result = streamText({
      model: responses,
      system: WEATHER_SYSTEM,
      prompt: WEATHER_QUESTION,
      tools: weatherTools(asked),
      stopWhen: stepCountIs(5),
      providerOptions: { openai: { store: false } },
    });
    assert.match(await result.text, WEATHER_ANSWER);
    assert.deepEqual(asked, ['Rome', 'Cairo']);
  });
});
