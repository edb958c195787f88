package dev.lily.cookbook;

import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.advisor.MessageChatMemoryAdvisor;
import org.springframework.ai.chat.memory.ChatMemory;
import org.springframework.stereotype.Service;

/** Remembers conversations. */
// tag::memory[]
@Service
class Secretary {
  private final ChatClient client;

  Secretary(ChatClient.Builder builder, ChatMemory memory) {
    client = builder.defaultAdvisors(MessageChatMemoryAdvisor.builder(memory).build()).build();
  }

  String answer(String conversation, String message) {
    return client
        .prompt(message)
        .advisors(advisors -> advisors.param(ChatMemory.CONVERSATION_ID, conversation))
        .call()
        .content();
  }
}
// end::memory[]
