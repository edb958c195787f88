package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationEvent;

/**
 * What happened to one choice.
 *
 * @param choice index of the choice
 */
record ChoiceEvent(int choice, GenerationEvent event) {}
