package dev.lily.engine.generation;

import java.time.Duration;

/**
 * Where a request's time went.
 *
 * @param queued from submission to admission
 * @param prefill from admission to the end of the prompt's last pass
 * @param firstToken from submission to the first generated token
 * @param decode from the first to the last generated token
 */
public record Timings(Duration queued, Duration prefill, Duration firstToken, Duration decode) {}
