package dev.lily.spring.openai;

import java.util.List;
import java.util.Random;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** What the clients of a soak ask: the i-th request follows from the seed and the chat it is in. */
final class SoakRequests {

  /** Kinds of requests, as many of each in 100 as they say. */
  enum Kind {
    QUESTION(18),
    STREAM(16),
    CHAT(16),
    TOOL(9),
    SCHEMA(6),
    SEEDED(5),
    CHOICES(3),
    OVERSIZE(4),
    MALFORMED(6),
    DEADLINE(4),
    LEAVES_WAITING(4),
    LEAVES_READING(7),
    SLOW(2);

    private final int share;

    Kind(int share) {
      this.share = share;
    }

    private static Kind draw(Random random) {
      int left = random.nextInt(100);
      for (Kind kind : values()) {
        left -= kind.share;
        if (left < 0) {
          return kind;
        }
      }
      throw new IllegalStateException("The shares are less than 100");
    }
  }

  /** The documented answer to a wrong request; the code may be none. */
  record Refusal(int status, String code) {
    static final Refusal NONE = new Refusal(200, "");
  }

  /**
   * A request.
   *
   * @param body without {@code stream}
   * @param refusal how it must be refused, if at all
   * @param random for what else its client decides
   */
  record Planned(Kind kind, String body, boolean streamed, Refusal refusal, Random random) {}

  /** A conversation that grows by a question and an answer a turn. */
  static final class Chat {
    private final ArrayNode messages = Json.array();

    private void ask(Random random) {
      if (messages.size() > 8) {
        messages.removeAll();
      }
      if (messages.isEmpty()) {
        messages.addObject().put("role", "system").put("content", pick(random, SYSTEMS));
      }
      messages.addObject().put("role", "user").put("content", question(random));
    }

    void answered(String content) {
      messages.addObject().put("role", "assistant").put("content", content);
    }

    /** Starts anew, after a question that got no answer. */
    void forget() {
      messages.removeAll();
    }
  }

  /** A body and what has to be said to it. */
  private record Malformed(String body, Refusal refusal) {}

  private static final List<String> SYSTEMS =
      List.of("You are a helpful assistant with tools.", "You are a helpful assistant.");
  private static final List<String> CITIES = List.of("Rome", "Cairo", "Lima", "Oslo");
  private static final List<String> DAYS = List.of("Monday", "Wednesday", "Friday", "Saturday");
  private static final List<String> COUNTRIES = List.of("China", "Italy", "Egypt", "Peru");

  private static final String TOOLS =
      """
      [{'type':'function','function':{'name':'get_weather',
        'description':'Get the weather in a given city.',
        'parameters':{'type':'object','properties':{'city':{'type':'string','description':'The city'}},
                      'required':['city']}}}]""";
  private static final String FORMAT =
      """
      {'type':'json_schema','json_schema':{'name':'sum','schema':{'type':'object',
       'properties':{'result':{'type':'integer','minimum':0}},'required':['result'],
       'additionalProperties':false}}}""";

  private static final String USER = "'messages':[{'role':'user','content':'hi'}]";
  private static final List<Malformed> MALFORMED =
      List.of(
          new Malformed("{'messages':", new Refusal(400, "")),
          new Malformed("[]", new Refusal(400, "")),
          new Malformed("{'a':".repeat(600) + "1" + "}".repeat(600), new Refusal(400, "")),
          new Malformed("{'n':'2'," + USER + "}", new Refusal(400, "invalid_type")),
          new Malformed("{'messages':[]}", new Refusal(400, "invalid_value")),
          new Malformed("{'temperature':-1," + USER + "}", new Refusal(400, "invalid_value")),
          new Malformed("{'functions':[]," + USER + "}", new Refusal(400, "unsupported_value")),
          new Malformed("{'model':'other'," + USER + "}", new Refusal(404, "model_not_found")),
          new Malformed("x".repeat(100_000), new Refusal(413, "request_too_large")));

  private final long seed;
  private final int contextLength;

  SoakRequests(long seed, int contextLength) {
    this.seed = seed;
    this.contextLength = contextLength;
  }

  /** The i-th request of all, in the chat of the client that sends it. */
  Planned request(int i, Chat chat) {
    Random random = new Random(seed * 1_000_003 + i);
    Kind kind = Kind.draw(random);
    if (kind == Kind.MALFORMED) {
      Malformed malformed = pick(random, MALFORMED);
      String body = malformed.body.replace('\'', '"');
      return new Planned(kind, body, false, malformed.refusal, random);
    }
    ObjectNode body = Json.object("{'temperature':0,'presence_penalty':0}");
    body.put("reasoning_effort", random.nextInt(4) == 0 ? "low" : "none").put("max_tokens", 200);
    body.putArray("messages").addObject().put("role", "user").put("content", question(random));
    Refusal refusal = Refusal.NONE;
    switch (kind) {
      case CHAT -> {
        chat.ask(random);
        body.set("messages", chat.messages.deepCopy());
      }
      case TOOL -> {
        body.set("tools", Json.read(TOOLS.replace('\'', '"')));
        say(body, "What is the weather in %s and %s?", pick(random, CITIES), pick(random, CITIES));
        if (random.nextBoolean()) {
          body.put("tool_choice", "required");
        }
      }
      case SCHEMA -> body.set("response_format", Json.read(FORMAT.replace('\'', '"')));
      case SEEDED -> body.put("temperature", 1).put("seed", random.nextInt());
      case CHOICES -> body.put("temperature", 1).put("seed", random.nextInt()).put("n", 3);
      case OVERSIZE -> {
        say(body, "%s", "a b ".repeat(contextLength));
        refusal = new Refusal(400, "context_length_exceeded");
      }
      case DEADLINE, LEAVES_WAITING, LEAVES_READING -> story(body, contextLength / 2);
      case SLOW -> {
        story(body, 100);
        body.put("logprobs", true).put("top_logprobs", 20);
      }
      default -> {}
    }
    boolean streamed =
        switch (kind) {
          case STREAM, LEAVES_READING, SLOW -> true;
          case QUESTION -> false;
          default -> random.nextBoolean();
        };
    return new Planned(kind, body.toString(), streamed, refusal, random);
  }

  private static void say(ObjectNode body, String format, Object... values) {
    body.putArray("messages")
        .addObject()
        .put("role", "user")
        .put("content", format.formatted(values));
  }

  /** An answer that does not end before so many tokens. */
  static ObjectNode story(ObjectNode body, int tokens) {
    say(body, "Tell me a story.");
    return body.put("reasoning_effort", "none").put("min_tokens", tokens).put("max_tokens", tokens);
  }

  private static String question(Random random) {
    return switch (random.nextInt(4)) {
      case 0 -> "What is %d - %d?".formatted(40 + random.nextInt(60), random.nextInt(40));
      case 1 -> "What is %d + %d?".formatted(random.nextInt(500), random.nextInt(500));
      case 2 -> "What day is before %s?".formatted(pick(random, DAYS));
      default -> "Capital of %s? Only the name.".formatted(pick(random, COUNTRIES));
    };
  }

  private static <T> T pick(Random random, List<T> from) {
    return from.get(random.nextInt(from.size()));
  }
}
