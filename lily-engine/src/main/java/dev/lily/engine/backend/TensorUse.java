package dev.lily.engine.backend;

/** What a tensor is for, which decides the types and the copies that a device needs of it. */
public enum TensorUse {
  /** The residual stream, or rows of it: fp32 everywhere. */
  RESIDUAL,
  /** Results of a norm, a projection or a mixer: may be narrower. */
  HIDDEN,
  /** Room for an attention gate apart from its query: not needed where one kernel does both. */
  GATE,
  /** Logits of tokens or experts: fp32 everywhere. */
  LOGITS
}
