import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import OpenAI from 'openai';
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

const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });

const ask = (content) => ({ model: MODEL, messages: [{ role: 'user', content }] });

const weatherRequest = () => ({
  model: MODEL,
  messages: [
    { role: 'system', content: WEATHER_SYSTEM },
    { role: 'user', content: WEATHER_QUESTION },
  ],
});

const definition = {
  name: 'get_weather',
  description: 'Get the weather in a given city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string', description: 'The city' } },
    required: ['city'],
  },
};

describe('npm openai: chat completions', () => {
  it('lists and gets models', async () => {
    const ids = [];
    for await (const model of client.models.list()) {
      ids.push(model.id);
    }
    assert.deepEqual(ids, [MODEL]);
    assert.equal((await client.models.retrieve(MODEL)).object, 'model');
  });

  it('answers with usage', async () => {
    const completion = await client.chat.completions.create(ask(SUM));
    assert.equal(completion.choices[0].message.content, SUM_ANSWER);
    assert.equal(completion.choices[0].finish_reason, 'stop');
    const { prompt_tokens, completion_tokens, total_tokens } = completion.usage;
    assert.ok(prompt_tokens > 0 && completion_tokens > 0);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
  });

  it('streams the same answer in pieces, with usage', async () => {
    const whole = await client.chat.completions.create(ask(SUM));
    const stream = await client.chat.completions.create({
      ...ask(SUM),
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces = [];
    let usage;
    for await (const chunk of stream) {
      pieces.push(chunk.choices[0]?.delta?.content ?? '');
      usage = chunk.usage ?? usage;
    }
    assert.equal(pieces.join(''), SUM_ANSWER);
    assert.ok(pieces.filter((piece) => piece !== '').length > 1);
    assert.equal(usage.total_tokens, whole.usage.total_tokens);
  });

  it('keeps reasoning out of the answer', async () => {
    const { choices } = await client.chat.completions.create({
      ...ask('What day is before Saturday?'),
      reasoning_effort: 'high',
    });
    assert.equal(choices[0].message.content, 'Friday comes before Saturday.');
    assert.equal(choices[0].message.reasoning_content, 'The days go Friday, Saturday.');
  });

  it('runs tools in a loop', async () => {
    const asked = [];
    const runner = client.chat.completions.runTools({
      ...weatherRequest(),
      tools: [
        {
          type: 'function',
          function: {
            ...definition,
            parse: JSON.parse,
            function: ({ city }) => {
              asked.push(city);
              return weather(city);
            },
          },
        },
      ],
    });
    assert.match(await runner.finalContent(), WEATHER_ANSWER);
    assert.deepEqual(asked, ['Rome', 'Cairo']);
  });

  it('runs tools in a loop of streams', async () => {
    const asked = [];
    const runner = client.chat.completions.runTools({
      ...weatherRequest(),
      stream: true,
      tools: [
        {
          type: 'function',
          function: {
            ...definition,
            parse: JSON.parse,
            function: ({ city }) => {
              asked.push(city);
              return weather(city);
            },
          },
        },
      ],
    });
    assert.match(await runner.finalContent(), WEATHER_ANSWER);
    assert.deepEqual(asked, ['Rome', 'Cairo']);
  });

  it('maps errors', async () => {
    await assert.rejects(client.chat.completions.create({ ...ask(SUM), model: 'other' }), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.equal(error.code, 'model_not_found');
      assert.equal(error.param, 'model');
      return true;
    });
    await assert.rejects(client.chat.completions.create({ ...ask(SUM), top_p: 2 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, 'top_p');
      return true;
    });
    await assert.rejects(
      client.chat.completions.create({ ...ask('a '.repeat(40_000)), stream: true }),
      (error) => error instanceof OpenAI.BadRequestError && error.code === 'context_length_exceeded',
    );
    const stranger = new OpenAI({ baseURL: BASE_URL, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  });

  it('names each request', async () => {
    const { request_id } = await client.chat.completions.create(ask(SUM)).withResponse();
    assert.match(request_id, /^req_/);
  });

  it('stops the engine when a stream is aborted', async () => {
    await stopsTheEngine(async () => {
      const stream = await client.chat.completions.create({ ...ask(STORY), ...ENDLESS, stream: true });
      let chunks = 0;
      for await (const _ of stream) {
        if (++chunks === 5) {
          break;
        }
      }
    });
  });

  it('stops the engine when a call is aborted', async () => {
    await stopsTheEngine(async () => {
      const abort = new AbortController();
      const call = client.chat.completions.create(
        { ...ask(STORY), ...ENDLESS },
        { signal: abort.signal },
      );
      const rejected = assert.rejects(call, OpenAI.APIUserAbortError);
      await untilActive();
      abort.abort();
      await rejected;
    });
  });

  it('answers by a JSON schema', async () => {
    const schema = {
      type: 'object',
      properties: { sum: { type: 'integer' } },
      required: ['sum'],
      additionalProperties: false,
    };
    const completion = await client.chat.completions.parse({
      ...ask(SUM),
      response_format: { type: 'json_schema', json_schema: { name: 'sum', strict: true, schema } },
    });
    const answer = JSON.parse(completion.choices[0].message.content);
    assert.deepEqual(Object.keys(answer), ['sum']);
    assert.ok(Number.isInteger(answer.sum));
  });

  it('refuses a schema that cannot be enforced', async () => {
    const schema = { type: 'array', uniqueItems: true };
    await assert.rejects(
      client.chat.completions.create({
        ...ask(SUM),
        response_format: { type: 'json_schema', json_schema: { name: 'set', schema } },
      }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === 'response_format',
    );
  });
});

describe('npm openai: completions', () => {
  const continuation = { model: MODEL, prompt: 'Lily', max_tokens: 8, min_tokens: 8 };

  it('continues a text', async () => {
    const completion = await client.completions.create(continuation);
    assert.equal(completion.choices[0].finish_reason, 'length');
    assert.equal(completion.usage.completion_tokens, 8);
    const { choices } = await client.completions.create({ ...continuation, echo: true });
    assert.equal(choices[0].text, 'Lily' + completion.choices[0].text);
  });

  it('streams the same text in pieces', async () => {
    const whole = await client.completions.create(continuation);
    const pieces = [];
    for await (const chunk of await client.completions.create({ ...continuation, stream: true })) {
      pieces.push(chunk.choices[0]?.text ?? '');
    }
    assert.equal(pieces.join(''), whole.choices[0].text);
    assert.ok(pieces.length > 1);
  });

  it('takes several prompts, one of them as token ids', async () => {
    const { choices } = await client.completions.create({ ...continuation, prompt: ['a', 'b'], n: 2 });
    assert.deepEqual(choices.map((choice) => choice.index), [0, 1, 2, 3]);
    const ids = await client.completions.create({ ...continuation, prompt: [10, 11, 12] });
    assert.equal(ids.usage.prompt_tokens, 3);
  });
});

describe('npm openai: responses', () => {
  const tools = [{ type: 'function', strict: false, ...definition }];

  it('answers with usage', async () => {
    const response = await client.responses.create({ model: MODEL, input: SUM });
    assert.equal(response.output_text, SUM_ANSWER);
    assert.equal(response.status, 'completed');
    assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
  });

  it('streams the same answer in pieces', async () => {
    const stream = client.responses.stream({ model: MODEL, input: SUM });
    const pieces = [];
    stream.on('response.output_text.delta', (event) => pieces.push(event.delta));
    const response = await stream.finalResponse();
    assert.equal(pieces.join(''), SUM_ANSWER);
    assert.ok(pieces.length > 1);
    assert.equal(response.output_text, SUM_ANSWER);
    assert.equal(response.output.length, 1);
  });

  it('keeps reasoning out of the answer', async () => {
    const stream = client.responses.stream({
      model: MODEL,
      input: 'What day is before Saturday?',
      reasoning: { effort: 'high' },
    });
    const { output, output_text } = await stream.finalResponse();
    assert.equal(output_text, 'Friday comes before Saturday.');
    assert.deepEqual(
      output.map((item) => item.type),
      ['reasoning', 'message'],
    );
    assert.equal(output[0].content[0].text, 'The days go Friday, Saturday.');
  });

  for (const streamed of [false, true]) {
    it('runs tools in a loop' + (streamed ? ' of streams' : ''), async () => {
      const respond = (input) => {
        const request = { model: MODEL, instructions: WEATHER_SYSTEM, tools, input };
        return streamed
          ? client.responses.stream(request).finalResponse()
          : client.responses.create(request);
      };
      const input = [{ role: 'user', content: WEATHER_QUESTION }];
      const { output } = await respond(input);
      const calls = output.filter((item) => item.type === 'function_call');
      assert.deepEqual(
        calls.map((call) => JSON.parse(call.arguments)),
        [{ city: 'Rome' }, { city: 'Cairo' }],
      );
      input.push(...output);
      for (const { call_id, arguments: text } of calls) {
        input.push({ type: 'function_call_output', call_id, output: weather(JSON.parse(text).city) });
      }
      assert.match((await respond(input)).output_text, WEATHER_ANSWER);
    });
  }

  it('maps errors', async () => {
    await assert.rejects(
      client.responses.create({ model: MODEL, input: SUM, previous_response_id: 'resp_1' }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === 'previous_response_id',
    );
    await assert.rejects(client.responses.retrieve('resp_1'), OpenAI.NotFoundError);
  });

  it('stops the engine when a stream is aborted', async () => {
    await stopsTheEngine(async () => {
      const stream = await client.responses.create({
        model: MODEL,
        input: STORY,
        stream: true,
        ...ENDLESS,
      });
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') {
          break;
        }
      }
    });
  });
});
