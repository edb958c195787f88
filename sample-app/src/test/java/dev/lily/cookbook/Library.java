package dev.lily.cookbook;

import java.util.List;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.advisor.vectorstore.QuestionAnswerAdvisor;
import org.springframework.ai.chat.prompt.PromptTemplate;
import org.springframework.ai.document.Document;
import org.springframework.ai.embedding.EmbeddingModel;
import org.springframework.ai.vectorstore.SearchRequest;
import org.springframework.ai.vectorstore.SimpleVectorStore;
import org.springframework.ai.vectorstore.VectorStore;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Answers from documents. */
// tag::library[]
@Configuration
class Library {

  @Bean
  VectorStore documents(EmbeddingModel embeddings) {
    SimpleVectorStore store = SimpleVectorStore.builder(embeddings).build();
    store.add(
        List.of(
            new Document("Maria lives in Naples."),
            new Document("Nadia works as a sailor."),
            new Document("Olaf likes cooking.")));
    return store;
  }

  @Bean
  ChatClient librarian(ChatClient.Builder builder, VectorStore documents) {
    PromptTemplate template =
        new PromptTemplate(
            """
            Context information is below.

            ---------------------
            {question_answer_context}
            ---------------------

            {query}""");
    return builder
        .defaultAdvisors(
            QuestionAnswerAdvisor.builder(documents)
                .searchRequest(SearchRequest.builder().topK(2).build())
                .promptTemplate(template)
                .build())
        .build();
  }
}
// end::library[]
