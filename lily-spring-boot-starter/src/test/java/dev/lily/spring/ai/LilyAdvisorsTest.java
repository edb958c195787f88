package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.ChatClientResponse;
import org.springframework.ai.chat.client.advisor.MessageChatMemoryAdvisor;
import org.springframework.ai.chat.client.advisor.vectorstore.QuestionAnswerAdvisor;
import org.springframework.ai.chat.memory.ChatMemory;
import org.springframework.ai.chat.memory.MessageWindowChatMemory;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.chat.prompt.PromptTemplate;
import org.springframework.ai.document.Document;
import org.springframework.ai.embedding.Embedding;
import org.springframework.ai.embedding.EmbeddingModel;
import org.springframework.ai.embedding.EmbeddingRequest;
import org.springframework.ai.embedding.EmbeddingResponse;
import org.springframework.ai.vectorstore.SearchRequest;
import org.springframework.ai.vectorstore.SimpleVectorStore;

/** Spring AI's memory and retrieval in front of the chat model. */
@Timeout(300)
class LilyAdvisorsTest {

  private final LilyChatModel model =
      LilyChatModel.builder(Nano.engine())
          .options(LilyChatOptions.builder().temperature(0.0).thinking(false).build())
          .build();

  private record Turn(String answer, int promptTokens) {}

  private static Turn turn(List<ChatResponse> chunks) {
    String text =
        chunks.stream()
            .map(chunk -> String.valueOf(chunk.getResult().getOutput().getText()))
            .reduce("", String::concat);
    return new Turn(text, chunks.getLast().getMetadata().getUsage().getPromptTokens());
  }

  @Test
  void remembersFiveTurnsOfCallsAndStreams() {
    ChatClient client =
        ChatClient.builder(model)
            .defaultAdvisors(
                MessageChatMemoryAdvisor.builder(MessageWindowChatMemory.builder().build()).build())
            .build();
    List<String> said =
        List.of(
            "My name is Clara.",
            "My favourite colour is yellow.",
            "Remember the number 176.",
            "What is my name?",
            "What is my favourite colour?");
    List<String> answers = new ArrayList<>();
    List<Message> history = new ArrayList<>();
    for (int i = 0; i < said.size(); i++) {
      ChatClient.ChatClientRequestSpec request =
          client
              .prompt(said.get(i))
              .advisors(advisors -> advisors.param(ChatMemory.CONVERSATION_ID, "clara"));
      Turn turn =
          turn(
              i % 2 == 0
                  ? List.of(request.call().chatResponse())
                  : request.stream().chatResponse().collectList().block());
      history.add(new UserMessage(said.get(i)));
      assertThat(turn.promptTokens())
          .isEqualTo(model.call(new Prompt(history)).getMetadata().getUsage().getPromptTokens());
      history.add(new AssistantMessage(turn.answer()));
      answers.add(turn.answer());
    }
    assertThat(answers.get(3)).isEqualTo("Your name is Clara.");
    assertThat(answers.get(4)).isEqualTo("Your favourite colour is yellow.");
  }

  @Test
  void keepsConversationsApart() {
    ChatClient client =
        ChatClient.builder(model)
            .defaultAdvisors(
                MessageChatMemoryAdvisor.builder(MessageWindowChatMemory.builder().build()).build())
            .build();
    for (String name : List.of("Clara", "Laura")) {
      client
          .prompt("My name is " + name + ".")
          .advisors(advisors -> advisors.param(ChatMemory.CONVERSATION_ID, name))
          .call()
          .content();
    }
    assertThat(
            client
                .prompt("What is my name?")
                .advisors(advisors -> advisors.param(ChatMemory.CONVERSATION_ID, "Clara"))
                .call()
                .content())
        .isEqualTo("Your name is Clara.");
  }

  /** Counts words into buckets: texts that share words are near each other. */
  private static final class WordCounts implements EmbeddingModel {
    private static final int BUCKETS = 64;

    @Override
    public EmbeddingResponse call(EmbeddingRequest request) {
      List<String> texts = request.getInstructions();
      return new EmbeddingResponse(
          IntStream.range(0, texts.size())
              .mapToObj(i -> new Embedding(counts(texts.get(i)), i))
              .toList());
    }

    @Override
    public float[] embed(Document document) {
      return counts(String.valueOf(document.getText()));
    }

    private static float[] counts(String text) {
      float[] counts = new float[BUCKETS];
      for (String word : text.toLowerCase(Locale.ROOT).split("\\W+")) {
        counts[Math.floorMod(word.hashCode(), BUCKETS)]++;
      }
      return counts;
    }
  }

  @Test
  void answersFromRetrievedDocuments() {
    SimpleVectorStore store = SimpleVectorStore.builder(new WordCounts()).build();
    store.add(
        List.of(
            new Document("Maria lives in Naples."),
            new Document("Nadia works as a sailor."),
            new Document("Olaf likes cooking.")));
    QuestionAnswerAdvisor advisor =
        QuestionAnswerAdvisor.builder(store)
            .searchRequest(SearchRequest.builder().topK(2).build())
            .promptTemplate(
                new PromptTemplate(
                    """
                    Context information is below.

                    ---------------------
                    {question_answer_context}
                    ---------------------

                    {query}"""))
            .build();
    ChatClient client = ChatClient.builder(model).defaultAdvisors(advisor).build();

    ChatClientResponse called = client.prompt("Where does Maria live?").call().chatClientResponse();
    assertThat(called.chatResponse().getResult().getOutput().getText())
        .isEqualTo("Maria lives in Naples.");
    assertThat((List<?>) called.context().get(QuestionAnswerAdvisor.RETRIEVED_DOCUMENTS))
        .hasSize(2);
    assertThat(
            String.join(
                "", client.prompt("What does Olaf like?").stream().content().collectList().block()))
        .isEqualTo("Olaf likes cooking.");
  }
}
