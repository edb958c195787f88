package dev.lily.engine.backend;

/**
 * What a back end runs on.
 *
 * @param name the device in words
 * @param detail kernel family, vector width, threads, or GPU family: one line for logs and health
 * @param memoryBudgetBytes bytes this back end may use for weights, states and scratch together
 */
public record DeviceInfo(String name, String detail, long memoryBudgetBytes) {}
