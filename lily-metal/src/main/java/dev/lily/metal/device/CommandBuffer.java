package dev.lily.metal.device;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.MessageSend;
import dev.lily.metal.objc.NSError;
import dev.lily.metal.objc.ObjcObject;

/**
 * A slot for one command buffer at a time: {@link #begin}, {@link #encoder}, {@link #commit},
 * {@link #await}, and again. Everything between begin and commit happens on one thread inside one
 * autorelease pool, and one command buffer of a device at a time is recorded. A round allocates
 * nothing. Buffers and pipelines it uses are not retained by Metal; the device keeps those that are
 * closed early until it has completed.
 */
public final class CommandBuffer implements AutoCloseable {
  private enum State {
    IDLE,
    RECORDING,
    COMMITTED,
    CLOSED
  }

  private static final long STATUS_COMPLETED = 4;
  private static final long STATUS_ERROR = 5;

  private final CommandQueue queue;
  private final DeviceObjects owner;
  private final ComputeEncoder encoder;

  private State state = State.IDLE;
  private long id;
  private long pool;
  private long serial = Long.MAX_VALUE;
  private Thread recorder = Thread.currentThread();
  private double gpuSeconds;

  CommandBuffer(CommandQueue queue, MetalDevice device) {
    this.queue = queue;
    this.owner = queue.owner();
    this.encoder = new ComputeEncoder(device);
  }

  /**
   * Starts recording.
   *
   * @throws DeviceUnavailableException if the queue gives no command buffer
   */
  public void begin() {
    require(State.IDLE, "Beginning");
    if (owner.isAnotherRecording(this)) {
      throw new IllegalStateException(
          "Beginning a command buffer: another one is being recorded; commit or discard it first");
    }
    long token = AutoreleasePool.push();
    try {
      id = ObjcObject.retain(queue.begin());
    } catch (RuntimeException e) {
      AutoreleasePool.pop(token);
      throw e;
    }
    pool = token;
    recorder = Thread.currentThread();
    serial = owner.nextSerial();
    state = State.RECORDING;
  }

  /**
   * Opens an encoder; the one before must have ended. The same Java object each time.
   *
   * @throws DeviceUnavailableException if Metal gives no encoder
   */
  public ComputeEncoder encoder(DispatchType type) {
    require(State.RECORDING, "Encoding into");
    if (encoder.isOpen()) {
      throw new IllegalStateException("Opening an encoder: the one before has not ended");
    }
    long opened = MessageSend.sendForLong(id, MetalSelectors.COMPUTE_COMMAND_ENCODER, type.value());
    if (opened == 0) {
      throw new DeviceUnavailableException("Opening an encoder: the command buffer gave none");
    }
    encoder.open(opened);
    return encoder;
  }

  /** Hands the recorded work to the GPU. */
  public void commit() {
    require(State.RECORDING, "Committing");
    if (encoder.isOpen()) {
      throw new IllegalStateException("Committing a command buffer: its encoder has not ended");
    }
    requireRecorder();
    MessageSend.send(id, MetalSelectors.COMMIT);
    state = State.COMMITTED;
    popPool();
  }

  /** Drops what was recorded; nothing of it runs. Does nothing unless recording. */
  public void discard() {
    if (state != State.RECORDING) {
      return;
    }
    requireRecorder();
    if (encoder.isOpen()) {
      encoder.end();
    }
    popPool();
    finish();
  }

  /** Whether {@link #await} would return at once. Does not block. */
  public boolean isCompleted() {
    require(State.COMMITTED, "Asking for the state of");
    return MessageSend.sendForLong(id, MetalSelectors.STATUS) >= STATUS_COMPLETED;
  }

  /**
   * Waits until the GPU has run it; the slot can then begin again, whatever the outcome.
   *
   * @throws CommandBufferException if the GPU did not complete it
   */
  public void await() {
    require(State.COMMITTED, "Awaiting");
    long token = AutoreleasePool.push();
    try {
      MessageSend.send(id, MetalSelectors.WAIT_UNTIL_COMPLETED);
      long status = MessageSend.sendForLong(id, MetalSelectors.STATUS);
      if (status != STATUS_COMPLETED) {
        throw failure(status);
      }
      gpuSeconds =
          MessageSend.sendForDouble(id, MetalSelectors.GPU_END_TIME)
              - MessageSend.sendForDouble(id, MetalSelectors.GPU_START_TIME);
    } finally {
      AutoreleasePool.pop(token);
      finish();
    }
  }

  private CommandBufferException failure(long status) {
    NSError error = NSError.read(MessageSend.sendForLong(id, MetalSelectors.ERROR));
    if (status != STATUS_ERROR) {
      error =
          new NSError(
              error.domain(), error.code(), "status " + status + ", " + error.description());
    }
    return CommandBufferException.of(error);
  }

  /** Seconds that the GPU spent on the last command buffer that completed. */
  public double gpuSeconds() {
    return gpuSeconds;
  }

  /** Discards or awaits what is open, without reporting its outcome, and gives the slot up. */
  @Override
  public void close() {
    if (state == State.CLOSED) {
      return;
    }
    discard();
    if (state == State.COMMITTED) {
      try (AutoreleasePool _ = AutoreleasePool.open()) {
        MessageSend.send(id, MetalSelectors.WAIT_UNTIL_COMPLETED);
        finish();
      }
    }
    state = State.CLOSED;
    owner.remove(this);
  }

  boolean isRecording() {
    return state == State.RECORDING;
  }

  /** Serial of the command buffer in the slot; the largest number if there is none. */
  long openSerial() {
    return serial;
  }

  private void popPool() {
    AutoreleasePool.pop(pool);
    pool = 0;
  }

  private void finish() {
    ObjcObject.release(id);
    id = 0;
    serial = Long.MAX_VALUE;
    state = State.IDLE;
    queue.ended();
    owner.releaseRetired();
  }

  private void require(State wanted, String doing) {
    if (state != wanted) {
      throw new IllegalStateException(
          doing + " a command buffer: it is " + state + ", and must be " + wanted);
    }
  }

  private void requireRecorder() {
    if (Thread.currentThread() != recorder) {
      throw new IllegalStateException(
          "Ending a recording: it was begun by thread "
              + recorder.getName()
              + " and must end there");
    }
  }
}
