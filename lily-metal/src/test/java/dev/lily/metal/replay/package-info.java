/**
 * Recorded dispatches and the bytes that they must move: what the replay on an NVIDIA GPU times.
 * Knows nothing of how a pass is recorded.
 */
package dev.lily.metal.replay;
