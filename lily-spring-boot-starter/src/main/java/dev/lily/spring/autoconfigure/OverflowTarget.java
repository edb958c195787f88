package dev.lily.spring.autoconfigure;

import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.OverflowChatModel;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.util.StringUtils;

/**
 * The chat model that {@code lily.overflow.model} means.
 *
 * @param name of the bean
 */
record OverflowTarget(String name, ChatModel model) {
  private static final String PROPERTY = LilyOverflowProperties.PREFIX + ".model";

  /**
   * Finds the model.
   *
   * @param asked name of the bean; if there is none, the only one that is not Lily's
   * @throws InvalidConfigurationPropertyValueException if it is not one other model
   */
  static OverflowTarget find(@Nullable String asked, ListableBeanFactory beans) {
    String name = StringUtils.hasText(asked) ? asked : onlyOne(asked, beans);
    if (!List.of(beans.getBeanNamesForType(ChatModel.class)).contains(name)) {
      throw invalid(asked, "there is no chat model bean of this name", beans);
    }
    if (isLilys(name, beans)) {
      throw invalid(asked, "this is Lily itself", beans);
    }
    return new OverflowTarget(name, beans.getBean(name, ChatModel.class));
  }

  private static String onlyOne(@Nullable String asked, ListableBeanFactory beans) {
    List<String> others = others(beans).toList();
    if (others.size() == 1) {
      return others.getFirst();
    }
    throw invalid(
        asked,
        others.isEmpty()
            ? "there is no other chat model bean"
            : "several chat models could be meant",
        beans);
  }

  private static Stream<String> others(ListableBeanFactory beans) {
    return Stream.of(beans.getBeanNamesForType(ChatModel.class))
        .filter(name -> !isLilys(name, beans));
  }

  private static boolean isLilys(String name, ListableBeanFactory beans) {
    return beans.isTypeMatch(name, LilyChatModel.class)
        || beans.isTypeMatch(name, OverflowChatModel.class);
  }

  private static InvalidConfigurationPropertyValueException invalid(
      @Nullable String asked, String reason, ListableBeanFactory beans) {
    List<String> others = others(beans).toList();
    String choice =
        others.isEmpty()
            ? "there are no chat model beans besides Lily's. A provider's starter gives none while spring.ai.model.chat is lily"
            : "the chat model beans besides Lily's are " + String.join(", ", others);
    return new InvalidConfigurationPropertyValueException(
        PROPERTY,
        asked,
        "%s; it must be the bean name of the chat model that takes what Lily cannot, and %s. To do without, set %s.enabled to false."
            .formatted(reason, choice, LilyOverflowProperties.PREFIX));
  }
}
